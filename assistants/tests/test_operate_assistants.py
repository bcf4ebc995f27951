"""Test the admin's pages of assistants."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from assistants.models import Assistant, AssistantGrant, AssistantTool, ScenePrompt
from tests.personas import new_group
from tools.calling.registry import builtin_names

PAGES = "/admin/assistants/assistant/"


@pytest.fixture
def operator(db):
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    return client


def change(assistant: Assistant) -> str:
    return f"{PAGES}{assistant.pk}/change/"


def form(assistant: Assistant, **fields: object) -> dict[str, object]:
    """Return what the page sends back, without bindings and scenes unless `fields` hold some."""
    empty = {
        f"{inline}-{name}": 0
        for inline in ("grants", "bindings", "scene_prompts")
        for name in ("TOTAL_FORMS", "INITIAL_FORMS")
    }
    body: dict[str, object] = {"name": assistant.name, "slug": assistant.slug}
    body["model"] = assistant.model
    body |= {"untrusted_calls": assistant.untrusted_calls, "builtin_tools": builtin_names()}
    return empty | body | {"user": str(assistant.user_id)} | fields


def test_lists_and_shows(operator, bob, new_assistant):
    assistant = new_assistant(bob, name="Weather frog")
    assert "Weather frog" in operator.get(PAGES).content.decode()
    assert operator.get(change(assistant)).status_code == 200
    assert operator.get(f"{PAGES}add/").status_code == 200
    assert operator.get(PAGES, {"q": "frog"}).status_code == 200


def test_tools_and_scenes_belong_to_the_assistants_organization(
    operator, bob, new_assistant, new_tool
):
    assistant, tool = new_assistant(bob), new_tool(bob)
    inlines = {
        "bindings-TOTAL_FORMS": 1,
        "bindings-0-tool": str(tool.pk),
        "bindings-0-functions": "get\r\nset",
        "scene_prompts-TOTAL_FORMS": 1,
        "scene_prompts-0-label": "Billing",
        "scene_prompts-0-examples": "Where is my invoice?\r\nYes, but when, and how?",
    }
    answer = operator.post(change(assistant), form(assistant, **inlines))
    assert answer.status_code == 302
    binding, scene = AssistantTool.objects.get(), ScenePrompt.objects.get()
    assert binding.organization == scene.organization == bob.organization
    assert (binding.tool, binding.functions) == (tool, ["get", "set"])
    assert scene.examples == ["Where is my invoice?", "Yes, but when, and how?"]


def test_groups_are_granted_rights(operator, bob, new_assistant):
    assistant, group = new_assistant(bob), new_group("Support", bob)
    grant = {
        "grants-TOTAL_FORMS": 1,
        "grants-0-group": str(group.pk),
        "grants-0-right": "edit",
    }
    assert operator.post(change(assistant), form(assistant, **grant)).status_code == 302
    granted = AssistantGrant.objects.get()
    assert (granted.group, granted.right, granted.organization) == (group, "edit", bob.organization)
    assert "Support" in operator.get(change(assistant)).content.decode()
    made = form(Assistant(name="New", slug="new", model="auto", user=bob.user), **grant)
    made |= {"organization": str(bob.organization.pk)}
    assert operator.post(f"{PAGES}add/", made).status_code == 302
    assert Assistant.objects.get(slug="new").grants.get().group == group


def test_rows_of_another_organization_are_refused(
    operator, bob, mallory, new_assistant, new_tool, new_library
):
    assistant = new_assistant(bob)
    body = form(
        assistant,
        **{"bindings-TOTAL_FORMS": 1, "bindings-0-tool": str(new_tool(mallory).pk)},
        **{"grants-TOTAL_FORMS": 1, "grants-0-group": str(new_group("Foreign", mallory).pk)},
        **{"grants-0-right": "use"},
        library=str(new_library(mallory).pk),
    )
    page = operator.post(change(assistant), body).content.decode()
    assert "This library belongs to another organization." in page
    assert "This tool belongs to another organization." in page
    assert "This group belongs to another organization." in page
    assert not AssistantTool.objects.exists()
    assert not AssistantGrant.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "gone", "No enabled model has this alias."),
        ("slug", "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00", "A slug must not look like an id."),
        ("builtin_tools", ["abacus"], "abacus is not one of the available choices."),
    ],
)
def test_a_wrong_field_is_explained(operator, bob, new_assistant, field, value, words):
    assistant = new_assistant(bob)
    page = operator.post(change(assistant), form(assistant, **{field: value})).content.decode()
    assert words in page


def test_an_assistant_does_not_move_to_another_tenant(operator, bob, mallory, new_assistant):
    assistant = new_assistant(bob)
    body = form(assistant, organization=str(mallory.organization.pk))
    assert operator.post(change(assistant), body).status_code == 302
    assistant.refresh_from_db()
    assert assistant.organization == bob.organization


def test_it_can_be_tried_where_a_room_above_answers(operator, bob, new_assistant, monkeypatch):
    monkeypatch.setattr("assistants.admin.TRY_ROUTE", "assistant")
    assistant = new_assistant(bob)
    assert "Try it" in operator.get(change(assistant)).content.decode()
    try_it = reverse("admin:assistants_assistant_try_it", args=[assistant.pk])
    answer = operator.get(try_it)
    assert (answer.status_code, answer["Location"]) == (302, f"/api/v1/assistants/{assistant.pk}/")


def test_otherwise_nothing_is_offered(operator, bob, new_assistant, monkeypatch):
    monkeypatch.setattr("assistants.admin.TRY_ROUTE", "nobody:answers")
    assistant = new_assistant(bob)
    assert "Try it" not in operator.get(change(assistant)).content.decode()
    try_it = reverse("admin:assistants_assistant_try_it", args=[assistant.pk])
    assert operator.get(try_it).status_code == 403


def test_pages_of_a_public_assistant_are_kept_as_browsers_write_them(operator, guest):
    assistant = guest.assistant
    body = form(assistant, public="on", public_origins="HTTPS://Shop.example/,http://a:80")
    assert operator.post(change(assistant), body).status_code == 302
    assistant.refresh_from_db()
    assert assistant.public_origins == ["https://shop.example", "http://a"]


def test_what_is_no_origin_is_explained(operator, guest):
    body = form(guest.assistant, public_origins="shop.example")
    answer = operator.post(change(guest.assistant), body)
    assert "shop.example: enter an origin" in answer.content.decode()


def test_sends_the_guests_of_chosen_assistants_away(operator, guest, bob, new_assistant):
    other = new_assistant(bob)
    body = {"action": "dismiss_guests", "_selected_action": [str(guest.assistant.pk)]}
    assert operator.post(PAGES, body).status_code == 302
    for assistant, epoch in ((guest.assistant, 1), (other, 0)):
        assistant.refresh_from_db()
        assert assistant.guest_epoch == epoch


def test_only_operators_get_in(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.get(PAGES).status_code == 302
