"""Every page of the admin opens: with nothing in it, searched, and where something can be added."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from amber.lib.operator_pages import readable_json

assert get_resolver().url_patterns, "the URLconf registers the pages"
PAGES = sorted(
    (model._meta.label_lower for model in admin.site._registry if model._meta.app_label != "auth"),
)


def admin_of(label: str) -> Any:
    return next(
        page for model, page in admin.site._registry.items() if model._meta.label_lower == label
    )


def address(label: str, page: str) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_{page}")


@pytest.mark.parametrize("label", PAGES)
def test_its_list_opens_and_is_searched(operator, label):
    assert operator.get(address(label, "changelist")).status_code == 200
    assert operator.get(address(label, "changelist"), {"q": "valve"}).status_code == 200


@pytest.mark.parametrize("label", PAGES)
def test_its_form_opens_unless_only_users_add_rows(operator, label):
    assert operator.get(address(label, "add")).status_code in (200, 403)


OF_ONE_ROW = sorted(
    pattern.name
    for page in admin.site._registry.values()
    for pattern in page.get_urls()
    if "<path:object_id>" in str(pattern.pattern) and pattern.name
)


@pytest.mark.parametrize("name", OF_ONE_ROW)
def test_an_address_that_names_no_row_leads_nowhere(operator, name):
    """Also one that names something that is no id: it is no error of Amber's."""
    for named in ("no-id", "0198c0de-0000-7000-8000-0000000000ab"):
        answer = operator.get(reverse(f"admin:{name}", args=[named]))
        assert answer.status_code in (302, 403, 404)


BIG = ("chats.turn", "chats.chat", "chats.feedback", "providers.usagerecord", "libraries.document")
"""Tables that grow with everybody's use, and that operators search."""


@pytest.mark.parametrize("label", BIG)
def test_what_names_rows_is_looked_up_by_indexes(operator, label, alice):
    """Postgres may neither scan the table nor walk an index with a filter: the search is answered all the same."""
    terms = [str(alice.user.pk), alice.organization.slug]
    terms += [alice.user.email] if "user" in str(admin_of(label).search_fields) else []
    table = label.replace(".", "_")
    for term in terms:
        with CaptureQueriesContext(connection) as asked:
            assert operator.get(address(label, "changelist"), {"q": term}).status_code == 200
        for statement in (each["sql"] for each in asked if f'FROM "{table}"' in each["sql"]):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
                cursor.execute(f"EXPLAIN {statement}")
                plan = "\n".join(row[0] for row in cursor.fetchall())
            assert f"Seq Scan on {table}" not in plan, (term, plan)


def test_the_index_tells_the_groups_apart(operator):
    groups = [each["name"] for each in admin.site.get_app_list(_request(operator))]
    assert len(groups) == len(set(groups))
    page = operator.get(reverse("admin:index")).content.decode()
    for words in ("Public API", "API keys", "Webhook deliveries", "Signing in"):
        assert words in page


def test_forms_say_what_a_name_does_not(operator):
    page = operator.get(reverse("admin:providers_languagemodel_add")).content.decode()
    assert "Price of a million prompt tokens" in page
    assert "Search by alias, upstream id" in (
        operator.get(reverse("admin:providers_languagemodel_changelist")).content.decode()
    )


def test_json_is_shown_line_by_line_and_escaped():
    shown = readable_json({"model": "<b>", "tools": [{"name": "a"}, {"name": "b"}], "notes": []})
    assert ">model: &lt;b&gt;\ntools:\n    {" in shown
    assert shown.count("\n") == 4


def _request(operator: Client) -> Any:
    return operator.get(reverse("admin:index")).wsgi_request
