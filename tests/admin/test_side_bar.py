"""The admin's side bar: each page once, in the order of work, and what one may open; the names of its tables."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import get_resolver, reverse

from accounts.models import User
from amber.front_page import navigation
from assistants.apps import _names
from assistants.models import Assistant

assert get_resolver().url_patterns, "the URLconf registers the pages"


def test_the_side_bar_has_each_page_once_and_in_the_order_of_work(operator):
    answer = operator.get(reverse("admin:index"))
    groups = answer.context["sidebar_navigation"]
    assert [group["title"] for group in groups] == [
        *("", "People", "Providers and models", "Assistants", "Libraries", "Tools", "Chats"),
        *("Memory", "Usage and budgets", "Public API", "Audit", "Signing in"),
    ]
    links = [item["link"] for group in groups for item in group["items"]]
    assert len(links) == len(set(links))
    for model in admin.site._registry:
        about = model._meta
        assert reverse(f"admin:{about.app_label}_{about.model_name}_changelist") in links
    for link in links:
        assert operator.get(link).status_code == 200, link


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/admin/", "System health"),
        ("/admin/libraries/document/", "Documents"),
        ("/admin/libraries/document/0/change/", "Documents"),
        ("/admin/libraries/document/ingestion/", "Ingestion"),
        ("/admin/providers/usagerecord/report/", "Usage"),
    ],
)
def test_the_page_that_is_shown_is_marked(operator, rf, path, title):
    request = rf.get(path)
    request.user = User.objects.get()
    items = [item for group in navigation.side_bar(request) for item in group["items"]]
    assert [item["title"] for item in items if item["active"]] == [title]


def test_the_side_bar_offers_what_one_may_open(db):
    person = User.objects.create_user("some@example.com", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_document"))
    client = Client()
    client.force_login(person)
    groups = client.get(reverse("admin:index")).context["sidebar_navigation"]
    assert [(group["title"], [item["title"] for item in group["items"]]) for group in groups] == [
        ("", ["System health"]),
        ("Libraries", ["Ingestion", "Documents"]),
    ]


def test_names_of_assistants_are_registered(alice):
    row = Assistant.objects.create(
        organization=alice.organization, user=alice.user, name="A", slug="a"
    )
    assert _names([row.pk]) == {row.pk: "A"}
