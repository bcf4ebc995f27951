"""Add, change, refresh and delete tools over REST; keys go in and never come out."""

from typing import Any

import pytest

from accounts.models import IdempotencyRecord
from amber.lib.secrets import decrypt_column
from amber.lib.tests.local_server import say
from tests.fixtures.personas import api
from tools.connections.connected import functions_of
from tools.connections.inspection import discover
from tools.models import Tool
from tools.tests.managing.adding import ALL, KEY, add, added, fields_of, of
from tools.tests.tool_service import function, serving

pytestmark = pytest.mark.django_db


# -- Adding ------------------------------------------------------------------------------------


def test_adds_a_tool_and_says_what_was_found(bob, weather):
    weather.functions = [
        function(),
        function("get alerts", idempotent=True, requires_approval=True, timeout_seconds=5),
    ]
    weather.fields = {"homepage_url": "https://weather.example", "made_up": 1}
    answer = add(bob, weather, api_key=KEY)
    assert answer.status_code == 201
    shown = answer.json()
    tool = Tool.objects.get()
    assert (tool.organization, tool.user) == (bob.organization, bob.user)
    assert shown["id"] == str(tool.pk)
    assert (shown["kind"], shown["name"]) == ("discovery", "Weather")
    assert shown["description"] == "Knows the weather."
    assert (shown["discovery_url"], shown["has_api_key"]) == (weather.url, True)
    assert (shown["shared"], shown["last_error"]) == (False, "")
    assert shown["homepage_url"] == "https://weather.example"
    assert shown["refreshed_at"] is not None
    plain, marked = shown["functions"]
    assert plain == function() | {
        "idempotent": False,
        "read_only": False,
        "requires_approval": False,
        "timeout_seconds": None,
    }
    assert (marked["name"], marked["timeout_seconds"]) == ("get alerts", 5)
    assert marked["idempotent"] and marked["requires_approval"]
    assert shown["function_names"] == ["forecast", "get alerts"]
    assert len(shown["warnings"]) == 1
    assert "get_alerts" in shown["warnings"][0]


def test_asks_with_the_key(bob, weather):
    weather.key = KEY
    tool = added(bob, weather, api_key=KEY)
    assert decrypt_column(tool, "api_key") == KEY
    assert weather.asked[0].headers["accept"] == "application/json"


def test_a_key_never_comes_out(bob, weather):
    tool = added(bob, weather, api_key=KEY)
    client = api(bob)
    for answer in (client.get(ALL), client.get(of(tool)), client.post(of(tool, "refresh/"))):
        assert answer.status_code == 200
        assert KEY not in answer.content.decode()
        assert tool.api_key_sealed not in answer.content.decode()
    assert KEY not in str(Tool.objects.values())


def test_a_key_is_not_logged(bob, weather, caplog):
    caplog.set_level("DEBUG")
    tool = added(bob, weather, api_key=KEY)
    weather.key = "another"
    assert api(bob).post(of(tool, "refresh/")).json()["last_error"]
    assert add(bob, weather, api_key=KEY).status_code == 400
    assert caplog.text
    assert KEY not in caplog.text


def test_a_name_of_ones_own_is_kept(bob, weather):
    assert added(bob, weather, name="Frog").name == "Frog"


def test_a_name_of_the_services_is_what_it_looks_like(bob, weather):
    weather.fields = {"name": "\u202eFr\u200bog"}
    assert added(bob, weather).name == "Frog"


def test_a_wrong_key_is_said_to_be_one(bob, weather):
    weather.key = KEY
    answer = add(bob, weather, api_key="another")
    assert answer.json()["error"]["code"] == "discovery_failed"
    assert list(fields_of(answer)) == ["api_key"]
    assert not Tool.objects.exists()


def test_a_wrong_manifest_is_explained_field_by_field_and_makes_no_tool(bob, weather):
    weather.fields = {"name": "", "callback_url": None}
    weather.functions = [function(description=5), function(parameters="none")]
    answer = add(bob, weather)
    assert answer.json()["error"]["code"] == "discovery_failed"
    assert set(fields_of(answer)) == {
        "name",
        "callback_url",
        "functions[0].description",
        "functions[1].parameters",
    }
    assert not Tool.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"<html>hello</html>", 200, "JSON"),
        (b"[]", 200, "not a JSON object"),
        (b"[" * 60 + b"]" * 60, 200, "JSON"),
        (b"secret trace", 500, "status 500"),
        (b"", 404, "status 404"),
    ],
    ids=["page", "list", "deep", "broken", "absent"],
)
def test_what_is_no_manifest_is_refused(bob, weather, body, status, words):
    weather.route("/manifest", say(body, status=status))
    answer = add(bob, weather)
    assert answer.json()["error"]["code"] == "discovery_failed"
    assert words in fields_of(answer)["discovery_url"][0]
    assert "secret" not in answer.content.decode()
    assert not Tool.objects.exists()


def test_a_callback_that_may_not_be_called_is_refused_at_once(bob, weather):
    weather.fields = {"callback_url": "http://10.0.0.1/call"}
    assert list(fields_of(add(bob, weather))) == ["callback_url"]


def test_an_unreachable_service_makes_no_tool(bob, settings):
    with serving() as gone:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [gone.host]
    answer = add(bob, gone)
    assert answer.json()["error"]["code"] == "discovery_failed"
    assert list(fields_of(answer)) == ["discovery_url"]
    assert not Tool.objects.exists()


def test_an_unsafe_address_makes_no_tool(bob, weather, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = []
    answer = add(bob, weather)
    assert answer.json()["error"]["code"] == "unsafe_address"
    assert list(fields_of(answer)) == ["discovery_url"]
    assert not weather.server.accepted


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "magic"}, "kind"),
        ({"kind": None}, "kind"),
        ({"discovery_url": ""}, "discovery_url"),
        ({"discovery_url": "x" * 9_000}, "discovery_url"),
        ({"api_key": "a\nb"}, "api_key"),
        ({"api_key": "k" * 5_000}, "api_key"),
        ({"shared": "perhaps"}, "shared"),
        ({"options": []}, "options"),
        ({"options": {"x": "y" * 60_000}}, "options"),
        ({"options": {"colour": "red"}}, "options.colour"),
        ({"options": {"ask_first": "forecast"}}, "options.ask_first"),
        ({"options": {"ask_first": ["tornado"]}}, "options.ask_first"),
        ({"options": {"trusted": "forecast"}}, "options.trusted"),
        ({"options": {"trusted": ["tornado"]}}, "options.trusted"),
        ({"options": {"document": 5}}, "options.document"),
        ({"options": {"document": "{}"}}, "document"),
        ({"document": "{}"}, "document"),
        ({"kind": "openapi", "document": "{}"}, "document"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_field_is_named(bob, weather, body, field):
    assert list(fields_of(add(bob, weather, **body))) == [field]
    assert not Tool.objects.exists()


def test_without_an_address_there_is_nothing_to_ask(bob):
    assert list(fields_of(api(bob).post(ALL, {"kind": "mcp"}))) == ["discovery_url"]


def test_what_postgres_cannot_hold_is_left_out(bob, weather):
    weather.fields = {"description": "a\0b"}
    weather.functions = [function(description="c\0d \\u0000")]
    tool = added(bob, weather)
    assert tool.description == "ab"
    assert tool.data["functions"][0]["description"] == "cd \\u0000"


def test_the_same_request_twice_makes_one_tool(bob, weather):
    client, body = api(bob), {"kind": "discovery", "discovery_url": weather.url, "api_key": KEY}
    first, second = (client.post(ALL, body, headers={"Idempotency-Key": "k1"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert Tool.objects.count() == len(weather.asked) == 1
    other = client.post(ALL, body | {"name": "x"}, headers={"Idempotency-Key": "k1"})
    assert other.json()["error"]["code"] == "idempotency_mismatch"
    assert KEY not in str(list(IdempotencyRecord.objects.values()))


def test_a_failed_one_may_be_sent_again_under_its_key(bob, weather):
    weather.fields = {"name": 5}
    headers = {"Idempotency-Key": "k1"}
    body = {"kind": "discovery", "discovery_url": weather.url}
    assert api(bob).post(ALL, body, headers=headers).status_code == 400
    weather.fields = {}
    assert api(bob).post(ALL, body, headers=headers).status_code == 201


def test_a_key_bound_to_an_assistant_manages_no_tools(bob, weather):
    tool = added(bob, weather, shared=True)
    _, secret = bob.new_key(assistant_id=tool.pk)
    client = api(key=secret)
    assert client.post(ALL, {"kind": "mcp", "discovery_url": weather.url}).status_code == 403
    assert client.patch(of(tool), {"name": "x"}).status_code == 403
    assert client.post(of(tool, "call/"), {"function": "forecast"}).status_code == 403


# -- Seeing ------------------------------------------------------------------------------------


def test_lists_own_and_shared_ones_newest_first(alice, bob, carol, mallory, weather):
    mine = added(bob, weather, name="Mine")
    shared = added(alice, weather, name="Shared", shared=True)
    added(alice, weather, name="Hers")
    added(mallory, weather, name="Foreign", shared=True)
    listed = api(bob).get(ALL).json()["results"]
    assert [row["name"] for row in listed] == ["Shared", "Mine"]
    assert [row["function_names"] for row in listed] == [["forecast"], ["forecast"]]
    assert "functions" not in listed[0]
    assert [row["id"] for row in api(bob).get(ALL, {"q": "shar"}).json()["results"]] == [
        str(shared.pk)
    ]
    assert api(bob).get(of(mine)).json()["functions"][0]["parameters"]["type"] == "object"


def test_members_use_what_is_shared_and_change_nothing(alice, bob, weather):
    tool = added(alice, weather, shared=True)
    client = api(bob)
    assert client.get(of(tool)).status_code == 200
    assert client.patch(of(tool), {"name": "x"}).status_code == 403
    assert client.delete(of(tool)).status_code == 403
    assert client.post(of(tool, "refresh/")).status_code == 403
    assert client.post(of(tool, "call/"), {"function": "forecast"}).status_code == 403
    assert client.get(of(tool, "calls/")).status_code == 403
    assert Tool.objects.get().name == "Weather"
    assert not weather.calls


def test_admins_change_what_is_shared_and_see_nothing_private(bob, carol, weather):
    shared, private = added(bob, weather, shared=True), added(bob, weather)
    assert api(carol).patch(of(shared), {"name": "x"}).status_code == 200
    assert api(carol).get(of(private)).status_code == 404
    assert api(carol).patch(of(private), {"name": "x"}).status_code == 404


# -- Changing ----------------------------------------------------------------------------------


def test_a_new_name_asks_nobody(bob, weather):
    tool = added(bob, weather)
    answer = api(bob).patch(of(tool), {"name": "Frog", "shared": True})
    assert (answer.status_code, answer.json()["name"], answer.json()["shared"]) == (
        200,
        "Frog",
        True,
    )
    assert len(weather.asked) == 1


def test_what_leads_elsewhere_is_asked_anew(bob, weather, settings):
    tool = added(bob, weather)
    with serving() as second:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, second.host]
        second.functions = [function("tornado")]
        answer = api(bob).patch(of(tool), {"discovery_url": second.url})
    assert answer.status_code == 200, answer.json()
    assert answer.json()["function_names"] == ["tornado"]
    tool.refresh_from_db()
    assert tool.discovery_url == second.url


def test_a_change_that_fails_changes_nothing(bob, weather):
    tool = added(bob, weather)
    body = {"name": "Frog", "discovery_url": weather.address("/absent-manifest")}
    answer = api(bob).patch(of(tool), body)
    assert answer.json()["error"]["code"] == "discovery_failed"
    before, tool = tool, Tool.objects.get()
    assert (tool.name, tool.discovery_url) == (before.name, before.discovery_url)
    assert (tool.data, tool.last_error) == (before.data, "")


def test_a_stored_key_is_never_sent_to_a_new_origin(bob, weather, settings):
    tool = added(bob, weather, api_key=KEY)
    with serving() as second:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, second.host]
        refused = api(bob).patch(of(tool), {"discovery_url": second.url})
        assert list(fields_of(refused)) == ["api_key"]
        assert not second.server.accepted
        without = api(bob).patch(of(tool), {"discovery_url": second.url, "api_key": ""})
        assert without.json()["has_api_key"] is False
        assert "authorization" not in second.asked[0].headers
        with_another = api(bob).patch(of(tool), {"discovery_url": second.url, "api_key": "new"})
        assert with_another.json()["has_api_key"] is True
        assert second.asked[1].headers["authorization"] == "Bearer new"


@pytest.mark.parametrize("changed_first", ["api_key", "discovery_url"])
def test_a_key_does_not_go_to_the_address_of_a_change_at_the_same_time(
    bob, weather, settings, monkeypatch, changed_first
):
    tool = added(bob, weather)
    with serving() as second:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, second.host]
        changes = {"api_key": KEY, "discovery_url": second.url}
        first = {changed_first: changes.pop(changed_first)}

        def discover_slowly(question: Any) -> Any:
            """While one request's service is asked, the other request is done."""
            monkeypatch.setattr("tools.services.discover", discover)
            assert api(bob).patch(of(tool), first).status_code == 200
            return discover(question)

        monkeypatch.setattr("tools.services.discover", discover_slowly)
        assert api(bob).patch(of(tool), changes).status_code == 409
        after = Tool.objects.get()
        assert (after.discovery_url == second.url) != bool(after.api_key_sealed)
        assert api(bob).patch(of(tool), {"name": "Ours"}).status_code == 200


def test_a_stored_key_stays_with_another_path_of_its_origin(bob, weather):
    tool = added(bob, weather, api_key=KEY)
    weather.route("/other", weather.server.routes["/manifest"])
    answer = api(bob).patch(of(tool), {"discovery_url": weather.address("/other")})
    assert (answer.status_code, answer.json()["has_api_key"]) == (200, True)
    assert weather.server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_new_key_is_tried_at_once(bob, weather):
    tool = added(bob, weather, api_key=KEY)
    weather.key = "new"
    assert list(fields_of(api(bob).patch(of(tool), {"api_key": "wrong"}))) == ["api_key"]
    assert api(bob).patch(of(tool), {"api_key": "new"}).status_code == 200
    assert decrypt_column(Tool.objects.get(), "api_key") == "new"


def test_functions_that_ask_first_are_chosen_without_asking_the_service(bob, weather):
    tool = added(bob, weather)
    chosen = {"options": {"ask_first": ["forecast"]}}
    answer = api(bob).patch(of(tool), chosen)
    assert (answer.status_code, answer.json()["options"]) == (200, chosen["options"])
    assert len(weather.asked) == 1
    assert api(bob).patch(of(tool), {"options": {"ask_first": ["*"]}}).status_code == 200
    answer = api(bob).patch(of(tool), {"options": {"ask_first": ["gone"]}})
    assert list(fields_of(answer)) == ["options.ask_first"]


def test_functions_are_trusted_by_their_owners_word_alone(bob, weather):
    weather.functions = [function(read_only=True), function("tornado")]
    tool = added(bob, weather)
    shown = api(bob).get(of(tool)).json()["functions"]
    assert [each["read_only"] for each in shown] == [True, False]
    chosen = {"options": {"trusted": ["tornado"]}}
    answer = api(bob).patch(of(tool), chosen)
    assert (answer.status_code, answer.json()["options"]) == (200, chosen["options"])
    assert len(weather.asked) == 1
    offered = functions_of(Tool.objects.get())
    assert [(each.is_read_only, each.is_harmless) for each in offered] == [
        (True, False),
        (False, True),
    ]
    api(bob).patch(of(tool), {"options": {"trusted": ["*"]}})
    assert all(each.is_harmless for each in functions_of(Tool.objects.get()))


def test_its_kind_stays(bob, weather):
    tool = added(bob, weather)
    assert api(bob).patch(of(tool), {"kind": "mcp"}).json()["kind"] == "discovery"


# -- Refreshing and deleting -------------------------------------------------------------------


def test_refreshes_by_hand(bob, weather):
    tool = added(bob, weather)
    weather.functions = [function("tornado")]
    weather.fields = {"name": "Storms", "description": "Knows storms."}
    shown = api(bob).post(of(tool, "refresh/")).json()
    assert (shown["function_names"], shown["last_error"]) == (["tornado"], "")
    assert (shown["name"], shown["description"]) == ("Weather", "Knows storms.")
    assert tool.refreshed_at is not None
    assert shown["refreshed_at"] > tool.refreshed_at.isoformat()


def test_a_failed_refresh_keeps_what_was_known_and_says_why(bob, weather):
    tool = added(bob, weather)
    weather.functions = [function(parameters={"type": "array"})]
    answer = api(bob).post(of(tool, "refresh/"))
    shown = answer.json()
    assert answer.status_code == 200
    assert shown["function_names"] == ["forecast"]
    assert "functions[0].parameters.type" in shown["last_error"]
    weather.functions = [function("tornado")]
    assert api(bob).post(of(tool, "refresh/")).json()["last_error"] == ""


def test_a_deleted_tool_is_gone(bob, weather):
    tool = added(bob, weather)
    assert api(bob).delete(of(tool)).status_code == 204
    assert api(bob).get(of(tool)).status_code == 404
    assert not Tool.objects.exists()
