"""Every address under /v1 against every asker, generated from the URLconf; errors in OpenAI's form alone."""

from typing import Any

import pytest

from chats.models import Turn
from tests.fixtures.personas import Persona, api
from tests.rest.routes import METHODS, openai_routes
from tests.tenancy.test_tenancy import call, named, rows_of

ROUTES = openai_routes()
CALLS = [(route, method) for route in ROUTES for method in route.methods]
CALLS_WITH_IDS = [(route, method) for route, method in CALLS if route.parameters]


def ids_of(persona: Persona) -> dict[str, Any]:
    """A thing of this persona's for every name in an address."""
    rows = rows_of(persona)
    turn = Turn.objects.get(pk=rows["turn_id"])
    return {
        "model_name": f"assistant:{rows['assistant_id']}",
        "response_id": f"resp_{turn.pk.hex}",
    }


def assert_openai_error(answer: Any, status: int, code: str | None) -> None:
    assert answer.status_code == status, answer.content
    told = answer.json()
    assert set(told) == {"error"}
    assert set(told["error"]) == {"message", "type", "param", "code"}
    assert told["error"]["code"] == code
    assert told["error"]["message"]
    assert answer.headers["x-should-retry"] in ("true", "false")


def test_the_addresses_are_these():
    assert {route.template for route in ROUTES} == {
        "v1/models",
        "v1/models/<path:model_name>",
        "v1/chat/completions",
        "v1/embeddings",
        "v1/responses",
        "v1/responses/<str:response_id>",
        "v1/responses/<str:response_id>/cancel",
        "v1/responses/<str:response_id>/input_items",
    }


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_without_a_key_it_is_401(alice, route, method):
    address = route.address(ids_of(alice))
    for client in (api(), api(alice), api(alice, check_csrf=True)):
        answer = call(client, method, address)
        assert_openai_error(answer, 401, None)
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="amber"'


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_keys_that_do_not_count_are_alike(alice, route, method):
    address = route.address(ids_of(alice))
    revoked, secret = alice.new_key(scopes=["public"])
    revoked.revoked_at = revoked.created_at
    revoked.save()
    expired, ended = alice.new_key(scopes=["public"])
    expired.expires_at = expired.created_at
    expired.save()
    said = set()
    for given in (secret, ended, "amb_live_nonsense", "sk-proj-of-somebody-else", ""):
        answer = call(api(key=given or " "), method, address)
        assert_openai_error(answer, 401, "invalid_api_key")
        said.add(answer.json()["error"]["message"])
    assert len(said) == 1


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_key_of_another_scope_is_403(alice, route, method):
    _, secret = alice.new_key(scopes=["read", "write"])
    answer = call(api(key=secret), method, route.address(ids_of(alice)))
    assert_openai_error(answer, 403, "insufficient_permissions")


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_guests_token_is_403(alice, guest, route, method):
    answer = call(api(key=guest.token), method, route.address(ids_of(alice)))
    assert_openai_error(answer, 403, "insufficient_permissions")


@pytest.mark.parametrize(("route", "method"), CALLS_WITH_IDS, ids=named)
def test_what_is_another_tenants_is_404(alice, bob, mallory, route, method):
    address = route.address(ids_of(alice))
    for stranger in (bob, mallory):
        _, secret = stranger.new_key(scopes=["public"])
        answer = call(api(key=secret), method, address)
        assert answer.status_code == 404, answer.content
        assert answer.json()["error"]["code"] in ("model_not_found", "not_found")


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_other_methods_are_405(alice, route):
    _, secret = alice.new_key(scopes=["public"])
    address = route.address(ids_of(alice))
    for method in set(METHODS) - set(route.methods):
        answer = call(api(key=secret), method, address)
        assert_openai_error(answer, 405, "method_not_allowed")


def test_an_address_that_is_none_is_404(alice):
    _, secret = alice.new_key(scopes=["public"])
    for method in ("get", "post"):
        for path in ("/v1/nothing", "/v1/chat/completions/", "/v1/"):
            assert_openai_error(call(api(key=secret), method, path), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "media_type", "status", "code"),
    [
        ("{", "application/json", 400, "invalid_json"),
        ("[]", "application/json", 400, "invalid_json"),
        ("\xff", "application/json", 400, "invalid_json"),
        ('{"a":' * 100 + "1" + "}" * 100, "application/json", 400, "invalid_json"),
        ('{"model": "a\\u0000b"}', "application/json", 400, "invalid_value"),
        ("a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        ("{}", "text/plain", 415, "unsupported_media_type"),
    ],
    ids=range(7),
)
def test_a_body_that_is_no_json_object(alice, body, media_type, status, code):
    client = api(key=alice.new_key(scopes=["public"])[1])
    for path in ("/v1/chat/completions", "/v1/embeddings"):
        answer = client.generic("POST", path, body.encode("latin-1"), content_type=media_type)
        assert_openai_error(answer, status, code)


def test_a_body_that_is_too_large_is_413(alice, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    client = api(key=alice.new_key(scopes=["public"])[1])
    answer = client.post("/v1/chat/completions", {"model": "x" * 2_000})
    assert_openai_error(answer, 413, "too_large")


def test_a_nul_in_the_address(alice):
    client = api(key=alice.new_key(scopes=["public"])[1])
    assert_openai_error(client.get("/v1/models/a%00b"), 400, "invalid_value")


def test_amber_that_is_broken_says_no_more_than_that(alice, monkeypatch, caplog):
    def break_down(*_: Any, **__: Any) -> None:
        raise RuntimeError("the reason")

    monkeypatch.setattr("public_api.openai.models_view.usable_models", break_down)
    answer = api(key=alice.new_key(scopes=["public"])[1]).get("/v1/models")
    assert_openai_error(answer, 500, "internal")
    assert "the reason" not in answer.content.decode()


def test_whatever_is_accepted(alice):
    client = api(key=alice.new_key(scopes=["public"])[1])
    for accepted in ("text/event-stream", "image/png", "nonsense"):
        assert client.get("/v1/models", HTTP_ACCEPT=accepted).status_code == 200


def test_other_addresses_keep_ambers_form(alice):
    _, secret = alice.new_key(scopes=["public"])
    assert "request_id" in api(key=secret).get("/api/v1/chats/").json()["error"]
    assert "request_id" in api(key=secret).post("/chat", {}).json()["error"]


# -- Web pages -----------------------------------------------------------------------------------

PAGE = "https://page.example"
SENT = "authorization,content-type,x-amber-chat-id,x-stainless-os,x-stainless-retry-count"


def preflight(path: str, origin: str) -> Any:
    return api().options(
        path,
        HTTP_ORIGIN=origin,
        HTTP_ACCESS_CONTROL_REQUEST_METHOD="POST",
        HTTP_ACCESS_CONTROL_REQUEST_HEADERS=SENT,
    )


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_pages_of_registered_origins_may_ask(alice, mallory, route):
    alice.new_key(origins=[PAGE])
    address = route.address(ids_of(alice))
    answer = preflight(address, PAGE)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    allowed = answer.headers["Access-Control-Allow-Headers"].split(", ")
    assert set(SENT.split(",")) <= set(allowed), "what OpenAI's client sends from a browser"
    stranger = preflight(address, "https://stranger.example")
    assert "Access-Control-Allow-Origin" not in stranger.headers


def test_the_request_is_held_to_its_own_keys_origins(alice):
    _, secret = alice.new_key(origins=[PAGE])
    alice.new_key(origins=["https://other.example"])
    client = api(key=secret)
    good = client.get("/v1/models", HTTP_ORIGIN=PAGE)
    assert good.status_code == 200
    assert "X-Amber-Chat-Id" in good.headers["Access-Control-Expose-Headers"]
    refused = client.get("/v1/models", HTTP_ORIGIN="https://other.example")
    assert_openai_error(refused, 403, "insufficient_permissions")
    assert refused.headers["Access-Control-Allow-Origin"] == "https://other.example", "to read why"
    assert client.get("/v1/models").status_code == 200, "servers do not say where they are from"


@pytest.mark.parametrize("value", [True, 0, 1.5, "hi", {"role": "user"}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat"])
def test_what_is_no_conversation_is_told_by_the_field(alice, path, value):
    client = api(key=alice.new_key(scopes=["public"])[1])
    answer = client.post(path, {"model": "any", "messages": value})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error.get("param") or next(iter(error["fields"]))).startswith("messages")


@pytest.mark.parametrize("value", [True, 0, 1.5, {"role": "user"}])
def test_what_is_no_input_is_told_by_the_field(alice, value):
    client = api(key=alice.new_key(scopes=["public"])[1])
    answer = client.post("/v1/responses", {"model": "any", "input": value})
    assert_openai_error(answer, 400, answer.json()["error"]["code"])
    assert answer.json()["error"]["param"] == "input"
