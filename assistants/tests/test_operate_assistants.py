"""Test the admin's pages of assistants."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from assistants.models import Assistant, AssistantGrant, AssistantTool, ScenePrompt
from tests.fixtures.personas import new_group
from tools.calling.registry import builtin_names

MAX_STATEMENTS = 12
PAGES = "/admin/assistants/assistant/"


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


def test_each_part_lies_on_a_tab_of_its_own(operator, bob, new_assistant):
    page = operator.get(change(new_assistant(bob))).content.decode()
    tabs = re.findall('role="tab" id="tab-(.*?)" aria-controls="panel-(.*?)"', page)
    names = ["basics", "model", "tools", "library", "scenes", "access", "quality"]
    assert tabs == [(name, name) for name in names]
    for name, place in (("prompt", 0), ("model", 1), ("builtin_tools", 2), ("public", 5)):
        before = page.partition(f'name="{name}"')[0]
        assert before.rpartition('id="panel-')[2].partition('"')[0] == names[place]
    for group, place in (("bindings", 2), ("scene_prompts", 4), ("grants", 5)):
        before = page.partition(f'id="{group}-group"')[0]
        assert before.rpartition('id="panel-')[2].partition('"')[0] == names[place]


def test_a_tab_counts_its_mistakes(operator, bob, new_assistant):
    body = form(assistant := new_assistant(bob), slug="", temperature="9", top_p="7")
    page = operator.post(change(assistant), body).content.decode()
    found = re.findall('id="tab-(.*?)" .*?data-mistakes="(.)"', page)
    assert {name for name, number in found if number != "0"} == {"basics", "model"}
    assert ("model", "2") in found


def test_built_in_tools_are_checked_and_those_that_are_gone_stay_off(operator, bob, new_assistant):
    assistant = new_assistant(bob, disabled_builtin_tools=["abacus", "calculate"])
    page = operator.get(change(assistant)).content.decode()
    checked = re.findall('name="builtin_tools" value="(.*?)"[^>]*? checked[ >]', page)
    assert checked == [name for name in builtin_names() if name != "calculate"]
    kept = [name for name in builtin_names() if name != "current_time"]
    assert operator.post(change(assistant), form(assistant, builtin_tools=kept)).status_code == 302
    assistant.refresh_from_db()
    assert assistant.disabled_builtin_tools == ["abacus", "current_time"]


def test_models_are_chosen_among_those_that_are_enabled(operator, bob, new_assistant, new_model):
    new_model(alias="big", context_tokens=64_000, vision=True)
    new_model(alias="off", enabled=False)
    assistant = new_assistant(bob, model="gone")
    page = operator.get(change(assistant)).content.decode()
    assert "big (64,000 tokens, sees images)" in page
    assert '<option value="gone" selected>' in page
    assert 'value="off"' not in page
    assert operator.post(change(assistant), form(assistant)).status_code == 302
    assert operator.post(change(assistant), form(assistant, model="big")).status_code == 302
    assistant.refresh_from_db()
    assert assistant.model == "big"


def test_only_rows_of_the_organization_are_offered(
    operator, bob, carol, mallory, new_assistant, new_tool, new_library
):
    assistant = new_assistant(bob)
    for whose in (bob, mallory):
        new_library(whose)
        new_tool(whose, name="Weather")
        new_group("Support", whose)
    place = reverse("admin:assistants_assistant_choices", args=[assistant.pk])
    assert place in operator.get(change(assistant)).content.decode()
    for model, field, count in (
        ("assistant", "library", 1),
        ("assistanttool", "tool", 1),
        ("assistantgrant", "group", 1),
    ):
        asked = {"app_label": "assistants", "model_name": model, "field_name": field, "term": ""}
        found = operator.get(place, asked).json()["results"]
        assert len(found) == count, field
    people = {each["text"] for each in operator.get(place, asked | _USERS).json()["results"]}
    assert {str(bob.user), str(carol.user)} <= people
    assert str(mallory.user) not in people
    assert operator.get(place, {"term": "x"}).status_code == 403
    elsewhere = {"model_name": "assistant", "field_name": "organization"}
    assert operator.get(place, asked | elsewhere).status_code == 403


_USERS = {"model_name": "assistant", "field_name": "user"}


def test_functions_of_a_bound_tool_are_checked(operator, bob, new_assistant, new_tool):
    functions = [{"name": name, "description": name} for name in ("get", "set")]
    tool = new_tool(bob, data={"functions": functions})
    assistant = new_assistant(bob)
    binding = AssistantTool.objects.create(
        organization=bob.organization, assistant=assistant, tool=tool, functions=["set", "old"]
    )
    page = operator.get(change(assistant)).content.decode()
    shown = re.findall('name="bindings-0-functions" value="(.*?)"(.*?)>', page)
    assert [(name, " checked " in f"{rest} ") for name, rest in shown] == [
        ("get", False),
        ("set", True),
        ("old", True),
    ]
    inner = {
        "bindings-TOTAL_FORMS": 1,
        "bindings-INITIAL_FORMS": 1,
        "bindings-0-id": str(binding.pk),
        "bindings-0-tool": str(tool.pk),
        "bindings-0-functions": ["get"],
    }
    assert operator.post(change(assistant), form(assistant, **inner)).status_code == 302
    binding.refresh_from_db()
    assert binding.functions == ["get"]


def test_an_example_of_several_lines_survives_a_save(operator, bob, new_assistant):
    assistant = new_assistant(bob)
    scene = ScenePrompt.objects.create(
        organization=bob.organization, assistant=assistant, label="B", examples=["a\nb", "c"]
    )
    inner = {
        "scene_prompts-TOTAL_FORMS": 1,
        "scene_prompts-INITIAL_FORMS": 1,
        "scene_prompts-0-id": str(scene.pk),
        "scene_prompts-0-label": "Bills",
        "scene_prompts-0-examples": "a\r\nb\r\nc",
    }
    assert operator.post(change(assistant), form(assistant, **inner)).status_code == 302
    scene.refresh_from_db()
    assert (scene.label, scene.examples) == ("Bills", ["a\nb", "c"])


def test_the_page_costs_few_statements_however_much_is_on_it(
    operator, bob, new_assistant, new_tool, django_assert_max_num_queries
):
    assistant = new_assistant(bob)
    for number in range(3):
        tool = new_tool(bob, name=f"T{number}")
        group = new_group(f"G{number}", bob)
        fields = {"organization": bob.organization, "assistant": assistant}
        AssistantTool.objects.create(tool=tool, **fields)
        AssistantGrant.objects.create(group=group, right="use", **fields)
        ScenePrompt.objects.create(label=f"S{number}", **fields)
    operator.get(change(assistant))
    with django_assert_max_num_queries(MAX_STATEMENTS):
        assert operator.get(change(assistant)).status_code == 200


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
