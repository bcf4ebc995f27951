"""POST /chat through the web process's handler, with a worker and a provider."""

import json
from typing import Any

import pytest

from amber.processes import wait_until
from chats.models import Chat, ChatMessage, Turn
from chats.tests.runs import WAIT_SECONDS, marker, unmarked
from engine.events import TurnStatus
from libraries.models import File
from public_api.tests.completions import png_url
from public_api.tests.exchange import Answer, request
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"


@pytest.fixture
def secret(alice):
    return alice.new_key(scopes=["public"])[1]


def post(secret, messages, *, leave_when=None, headers=None, **more):
    body = {"messages": messages} | more if isinstance(messages, list) else messages
    given = {"authorization": f"Bearer {secret}"} | (headers or {})
    return request("POST", "/chat", body=body, headers=given, leave_when=leave_when)


def said(content, **more):
    return {"role": "user", "content": content} | more


def seen_by_model(answer: Answer) -> list[dict[str, Any]]:
    """What fake-echo was sent, without Amber's marks."""
    seen: list[dict[str, Any]] = unmarked(json.loads(answer.json()["messages"][-1]["content"]))
    return seen


# -- It works ------------------------------------------------------------------------------------


def test_answers_with_the_whole_history(secret, new_model, worker):
    new_model(default=True)
    history = [{"role": "system", "content": "Be brief."}, said(SIX, name="ann", own=1)]
    answer = post(secret, history, temperature=2, stream=True, unknown={"x": 1})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.json() == {
        "messages": [*history, {"role": "assistant", "content": answer_text(6)}]
    }


def test_nothing_is_kept_but_the_turn_for_a_while(alice, secret, new_model, worker):
    new_model(default=True)
    post(secret, [said(SIX)])
    assert not Chat.objects.exists()
    assert not ChatMessage.objects.exists()
    turn = Turn.objects.get()
    assert (turn.user, turn.organization, turn.assistant) == (
        alice.user,
        alice.organization,
        None,
    )
    assert turn.api_key is not None
    assert worker == [turn.pk]


def test_calls_tools_and_tells_their_results(secret, new_model, worker):
    new_model(default=True)
    question = said(marker("calculate", {"expression": "9.0+6.0"}))
    _, calling, result, final = post(secret, [question]).json()["messages"]
    (call,) = calling.pop("tool_calls")
    assert calling == {"role": "assistant", "content": None}
    assert call["type"] == "function"
    assert call["function"]["name"] == "calculate"
    assert json.loads(call["function"]["arguments"]) == {"expression": "9.0+6.0"}
    assert (result["role"], result["tool_call_id"]) == ("tool", call["id"])
    assert "15" in result["content"]
    assert final == {"role": "assistant", "content": answer_text(6)}


def test_several_calls_at_once(secret, new_model, worker):
    new_model("fake-parallel-tools", default=True)
    messages = post(secret, [said("both")]).json()["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    asked = [call["id"] for call in messages[1]["tool_calls"]]
    assert len(asked) == 2
    assert sorted(m["tool_call_id"] for m in messages[2:4]) == sorted(asked)


def test_takes_back_what_it_returned(secret, new_model, worker):
    new_model(default=True)
    new_model("fake-echo")
    history = post(secret, [said(marker("current_time", {"time_zone": "UTC"}))]).json()["messages"]
    assert [m["role"] for m in history] == ["user", "assistant", "tool", "assistant"]
    history.append(said("And now? [[fake tokens=1]]"))
    answer = post(secret, history, model="fake-echo")
    assert answer.status == 200
    assert answer.json()["messages"][:-1] == history
    question, calling, result, final, again = seen_by_model(answer)
    assert calling["tool_calls"] == history[1]["tool_calls"]
    assert result == history[2]
    assert (question, final, again) == (history[0], history[3], history[4])


def test_a_history_that_ends_with_a_result_goes_on(secret, new_model, worker):
    new_model("fake-echo", default=True)
    function = {"name": "calculate", "arguments": '{"expression": "1+1"}'}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    answer = post(
        secret, [said("1+1?"), calling, {"role": "tool", "tool_call_id": "c", "content": "2"}]
    )
    assert [m["role"] for m in seen_by_model(answer)] == ["user", "assistant", "tool"]


def test_names_tell_people_apart(secret, new_model, worker):
    new_model("fake-echo", default=True)
    answer = post(secret, [said("a", name="ann"), said("b", name="ann"), said("c", name="bo")])
    assert seen_by_model(answer) == [
        {"role": "user", "content": "a\nb", "name": "ann"},
        {"role": "user", "content": "c", "name": "bo"},
    ]


def test_a_model_is_chosen_by_its_alias(secret, new_model, worker):
    new_model(default=True)
    new_model("fake-echo")
    assert seen_by_model(post(secret, [said("Hi")], model="fake-echo"))
    assert post(secret, [said(SIX)], model="auto").json()["messages"][-1]["content"] == answer_text(
        6
    )
    assert post(secret, [said(SIX)], model=None).status == 200


def test_images_are_shown_to_a_model_that_sees(secret, new_model, worker, alice, settings):
    settings.AMBER_PUBLIC_URL = ""
    new_model(default=True)
    new_model("fake-echo", vision=True, default_vision=True)
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": png_url()}},
    ]
    answer = post(secret, [said(parts)])
    assert answer.json()["messages"][0] == said(parts)
    (message,) = seen_by_model(answer)
    assert message["content"][0] == {"type": "text", "text": "What is it?"}
    assert message["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    file = File.objects.get()
    assert (file.user, file.organization) == (alice.user, alice.organization)
    assert file.expired_at is not None


# -- It refuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
        (
            {"messages": [said("x"), {"role": "tool", "content": "x", "tool_call_id": "c"}]},
            "messages.1.tool_call_id",
        ),
        ({"messages": [said([{"type": "audio"}])]}, "messages.0.content.0"),
        ({"messages": [said("a\0b")]}, "messages.0.content"),
        ({"messages": [said("x")], "model": 1}, "model"),
        ({"messages": [said("x")], "model": "unknown"}, "model"),
        ({"messages": [said("x")], "model": "assistant:x"}, "model"),
    ],
    ids=range(11),
)
def test_a_bad_body_is_400_and_names_the_field(secret, new_model, worker, body, field):
    new_model(default=True)
    answer = post(secret, body)
    assert answer.status == 400
    assert list(answer.error["fields"]) == [field]
    assert not Turn.objects.exists()


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b"\xff"], ids=range(4))
def test_what_is_no_json_object_is_400(secret, worker, body):
    answer = request("POST", "/chat", body=body, headers={"authorization": f"Bearer {secret}"})
    assert answer is not None
    assert (answer.status, answer.error["code"]) == (400, "malformed_json")


def test_bytes_that_are_no_image_are_400_and_leave_nothing(secret, new_model, worker):
    new_model(default=True)
    good = {"type": "image_url", "image_url": {"url": png_url()}}
    bad = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    answer = post(secret, [said([good, bad])])
    assert answer.status == 400
    assert list(answer.error["fields"]) == ["messages.0.content.1"]
    assert not File.objects.exists()
    assert not Turn.objects.exists()


def test_without_a_key_it_is_401(worker):
    for headers in ({}, {"authorization": "Bearer nonsense"}, {"authorization": "Basic YTpi"}):
        answer = request("POST", "/chat", body={"messages": [said("x")]}, headers=headers)
        assert answer is not None
        assert answer.status == 401
    assert not Turn.objects.exists()


def test_a_key_of_another_scope_is_403(alice, worker):
    _, other = alice.new_key(scopes=["read", "write"])
    answer = post(other, [said("x")])
    assert (answer.status, answer.error["code"]) == (403, "forbidden")
    assert not Turn.objects.exists()


def test_a_key_for_one_assistant_is_403(alice, new_model, worker):
    from chats.tests.rows import new_assistant

    _, bound = alice.new_key(assistant_id=new_assistant(alice).pk)
    assert post(bound, [said("x")]).status == 403


def test_a_turn_belongs_to_its_key(alice, mallory, secret, new_model, worker):
    new_model(default=True)
    headers = {"idempotency-key": "k"}
    mine = post(secret, [said(SIX)], headers=headers)
    _, foreign = mallory.new_key(scopes=["public"])
    client_tools = post(foreign, [said(SIX)], headers=headers)
    assert (mine.status, client_tools.status) == (200, 200)
    assert Turn.objects.count() == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods_are_405(secret, worker, method):
    answer = request(method, "/chat", headers={"authorization": f"Bearer {secret}"})
    assert answer is not None
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")


# -- It fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "code", "status"),
    [
        ("fake-400", "provider_rejected", 502),
        ("fake-401", "provider_auth", 502),
        ("fake-context-too-long", "context_too_long", 502),
        ("fake-cut-mid", "provider_lost", 502),
    ],
)
def test_a_turn_that_fails_is_an_error(secret, new_model, worker, model, code, status):
    new_model(model, default=True)
    answer = post(secret, [said(SIX)])
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.error["turn_id"] == str(Turn.objects.get().pk)


def test_a_turn_that_somebody_cancels_is_409(secret, new_model, worker, monkeypatch):
    from chats import services

    monkeypatch.setattr(
        "chats.turns.admission.enqueue_turn",
        lambda pk: services.cancel_turn(Turn.objects.get(pk=pk)),
    )
    answer = post(secret, [said(SIX)])
    assert (answer.status, answer.error["code"]) == (409, "conflict")


def test_without_a_worker_it_gives_up_in_the_end(secret, new_model, monkeypatch, settings):
    settings.AMBER_TURN_SECONDS = 0.1
    monkeypatch.setattr("chats.streaming.turn_follower.QUEUE_SECONDS", 0.1)
    monkeypatch.setattr("chats.turns.admission.enqueue_turn", lambda pk: None)
    new_model(default=True)
    answer = post(secret, [said(SIX)])
    assert (answer.status, answer.error["code"]) == (503, "unavailable")
    assert Turn.objects.get().status == TurnStatus.CANCELLED


# -- The client leaves, or comes back ------------------------------------------------------------


def is_running() -> bool:
    return Turn.objects.filter(status=TurnStatus.RUNNING, step=0).exists()


def wait_until_running() -> None:
    from django.db import connections

    assert wait_until(is_running, timeout_seconds=WAIT_SECONDS)
    connections.close_all()


def test_a_client_that_leaves_cancels_its_turn(secret, new_model, worker, fake_provider):
    new_model(default=True)
    answer = post(secret, [said("[[fake ttft=60000]]")], leave_when=wait_until_running)
    assert answer is None
    cancelled = Turn.objects.filter(status=TurnStatus.CANCELLED)
    assert wait_until(cancelled.exists, timeout_seconds=WAIT_SECONDS)


def test_with_an_idempotency_key_it_may_come_back(secret, new_model, worker):
    new_model(default=True)
    headers = {"idempotency-key": "k-1"}
    question = [said("[[fake ttft=700 tokens=6]]")]
    assert post(secret, question, headers=headers, leave_when=wait_until_running) is None
    answer = post(secret, question, headers=headers)
    assert answer.status == 200
    assert answer.json()["messages"][-1]["content"] == answer_text(6)
    assert Turn.objects.count() == 1
    other = post(secret, [said("Ho")], headers=headers)
    assert (other.status, other.error["code"]) == (409, "idempotency_mismatch")


# -- Web pages -----------------------------------------------------------------------------------

PAGE = "https://page.example"


def preflight(origin: str, path: str = "/chat") -> Answer:
    headers = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    answer = request("OPTIONS", path, headers=headers)
    assert answer is not None
    return answer


def test_a_preflight_allows_any_registered_origin(alice, mallory):
    alice.new_key(origins=[PAGE])
    mallory.new_key(origins=["https://rival.example"])
    for origin in (PAGE, "https://rival.example"):
        answer = preflight(origin)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-origin" not in preflight("https://stranger.example").headers
    assert "access-control-allow-origin" not in preflight("null").headers
    assert "access-control-allow-origin" not in preflight(PAGE, "/api/v1/chats/").headers


def test_origins_of_revoked_keys_are_forgotten(alice):
    key, _ = alice.new_key(origins=[PAGE])
    key.revoked_at = key.created_at
    key.save()
    assert "access-control-allow-origin" not in preflight(PAGE).headers


def test_the_request_is_held_to_its_own_keys_origins(alice, new_model, worker):
    new_model(default=True)
    _, paged = alice.new_key(origins=[PAGE])
    alice.new_key(origins=["https://other.example"])
    good = post(paged, [said(SIX)], headers={"origin": PAGE})
    assert good.status == 200
    assert good.headers["access-control-allow-origin"] == PAGE
    bad = post(paged, [said(SIX)], headers={"origin": "https://other.example"})
    assert bad.status == 403
    assert bad.headers["access-control-allow-origin"] == "https://other.example"
    assert post(paged, [said(SIX)]).status == 200, "servers do not say where they are from"
