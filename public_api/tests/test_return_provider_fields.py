"""Models that want back what they sent, asked by programs: what a client must bring back it is given,
and what it brings back reaches the model. The fake provider refuses whatever lacks the very signature or
thought (`tests.fakes.habits`).
"""

import json
from typing import Any

import pytest

from amber.processes import wait_until
from assistants.models import Assistant
from chats.models import Chat, ChatMessage, Turn
from chats.tests.event_streams import stream_of
from chats.tests.rows import new_assistant
from chats.tests.runs import marker
from engine.provider import openai_model
from public_api.tests.completions import WEATHER, ask, deltas, said, streamed, text_of
from public_api.tests.exchange import request
from public_api.tests.guests.visits import ask as visitor_asks
from public_api.tests.guests.visits import get as visitor_gets
from public_api.tests.guests.visits import open_chat
from public_api.tests.responses.test_create_responses import WEATHER as WEATHER_OF_RESPONSES
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = ["fake-gemini", "fake-deepseek"]
SIX = "[[fake tokens=6]]"
OWN_LOOP = f"{marker('calculate', {'expression': '9+6'})[:-2]} rounds=2]]"
THEIR_LOOP = f"{marker('weather', {'city': 'Oslo'})[:-2]} rounds=2]]"
FIELDS = {"extra_content", "reasoning_content"}
THOUGHT = "I thought of"


@pytest.fixture(autouse=True)
def model(new_model, monkeypatch):
    """A model that was asked twice would hide what got lost."""
    monkeypatch.setattr(openai_model, "_mends", {})
    for name in (*BOTH, "fake-json-gemini", "fake-json-deepseek", "fake-strict"):
        new_model(name)


@pytest.fixture(autouse=True)
def nothing_was_learnt(model):
    yield
    assert not openai_model._mends


def whole(client: Any, messages: list[Any], **more: Any) -> Any:
    answer: Any = ask(client, messages, **more)
    return answer.to_dict()["choices"][0]["message"]


def grown(client: Any, messages: list[Any], **more: Any) -> Any:
    """The message that a client puts together of the pieces, as OpenAI's own does."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for delta in deltas(streamed(client, messages, **more)):
        for name, value in delta.items():
            if name == "tool_calls":
                pieces = [{n: v for n, v in piece.items() if n != "index"} for piece in value]
                message.setdefault("tool_calls", []).extend(pieces)
            elif name != "role" and value is not None:
                message[name] = (message.get(name) or "") + value
    return message


# -- /v1/chat/completions --------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [whole, grown])
@pytest.mark.parametrize("name", [*BOTH, "fake-json-gemini", "fake-json-deepseek"])
def test_a_client_brings_back_what_it_was_given(client, name, answered):
    history: list[Any] = [said(THEIR_LOOP)]
    for _ in range(2):
        message = answered(client, history, model=name, tools=[WEATHER])
        (call,) = message["tool_calls"]
        assert FIELDS & {*message, *call}
        history += [message, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]
    last = answered(client, history, model=name, tools=[WEATHER])
    assert last["content"] == answer_text(6)
    history += [last, said(SIX)]
    assert answered(client, history, model=name, tools=[WEATHER])["content"] == answer_text(6)


@pytest.mark.parametrize("name", BOTH)
def test_a_client_may_go_on_with_another_model(client, name):
    history: list[Any] = [said(THEIR_LOOP)]
    message = whole(client, history, model=name, tools=[WEATHER])
    call_id = message["tool_calls"][0]["id"]
    history += [message, {"role": "tool", "tool_call_id": call_id, "content": "Rain"}, said(SIX)]
    answer = whole(client, history, model="fake-strict", tools=[WEATHER])
    assert answer["content"] == answer_text(6)


def test_fields_of_an_unnamed_sender_go_to_whoever_answers(client, fake_provider):
    """As a client kept them that knows Gemini and DeepSeek, and not us."""
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    signed = {**called, "extra_content": {"google": {"thought_signature": "signed:c1"}}}
    thinking = {"role": "assistant", "content": None, "reasoning_content": "Hm."}
    result = {"role": "tool", "tool_call_id": "c1", "content": "Rain"}
    history = [said("b3b3 [[fake tokens=6]]"), {**thinking, "tool_calls": [signed]}, result]
    assert whole(client, history, model="fake-gemini")["content"] == answer_text(6)
    [sent] = fake_provider.requests("b3b3")
    assert sent["messages"][1]["reasoning_content"] == "Hm."
    assert sent["messages"][1]["tool_calls"] == [signed]


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"reasoning_content": 5, "content": "!"}, "messages[1].reasoning_content"),
        (
            {
                "tool_calls": [
                    {"id": "c", "function": {"name": "f", "arguments": ""}, "extra_content": "x"}
                ]
            },
            "messages[1].tool_calls[0].extra_content",
        ),
    ],
)
def test_fields_of_another_form_are_named(address, alice, message, param):
    answer = post(alice, "/v1/chat/completions", [said("?"), {"role": "assistant", **message}])
    assert (answer.status, answer.error["param"]) == (400, param)


def test_fields_that_are_too_long_are_refused(address, alice):
    called = {"id": "c", "function": {"name": "f", "arguments": ""}}
    called["extra_content"] = {"google": {"thought_signature": "x" * 600_000}}
    answer = post(
        alice, "/v1/chat/completions", [said("?"), {"role": "assistant", "tool_calls": [called]}]
    )
    assert answer.status == 400
    assert answer.error["param"] == "messages[1].tool_calls[0].extra_content"


@pytest.mark.parametrize("answered", [whole, grown])
@pytest.mark.parametrize("name", BOTH)
def test_an_assistants_own_tools_are_run_here_and_not_shown(client, alice, name, answered):
    new_assistant(alice, model=name, slug="ada")
    message = answered(client, [said(OWN_LOOP)], model="assistant:ada")
    assert message["content"] == answer_text(6)
    assert not {*FIELDS, "amber_sender"} & {*message} - {"reasoning_content"}


def answered_without_fields(message: Any) -> list[Any]:
    """What a client sends that keeps nothing but OpenAI's form."""
    (call,) = message["tool_calls"]
    plain = {name: call[name] for name in ("id", "type", "function")}
    asked = {"role": "assistant", "content": None, "tool_calls": [plain]}
    return [asked, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]


@pytest.mark.parametrize("name", BOTH)
def test_a_stored_chat_keeps_them_itself(client, alice, name):
    new_assistant(alice, model=name, slug="ada")
    about: Any = {"model": "assistant:ada", "tools": [WEATHER]}
    message = whole(client, [said(THEIR_LOOP)], metadata={"chat_id": "new"}, **about)
    about["metadata"] = {"chat_id": str(Chat.objects.get().pk)}
    message = whole(client, answered_without_fields(message), **about)
    answer = whole(client, answered_without_fields(message), **about)
    assert answer["content"] == answer_text(6)
    assert text_of(streamed(client, [said(OWN_LOOP)], **about)) == answer_text(6)
    assert whole(client, [said(SIX)], **about)["content"] == answer_text(6)


@pytest.mark.parametrize("name", BOTH)
def test_a_chat_that_begins_with_a_history_keeps_its_fields(client, name):
    message = whole(client, [said(THEIR_LOOP)], model=name, tools=[WEATHER])
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Rain"}
    history = [said(f"{THEIR_LOOP[:-2]} rounds=1]]"), message, result]
    answer = whole(client, history, model=name, metadata={"chat_id": "new"}, tools=[WEATHER])
    assert answer["content"] == answer_text(6)


# -- /v1/responses ---------------------------------------------------------------------------------


def respond(client: Any, streams: bool, **asked: Any) -> Any:
    if not streams:
        return client.responses.create(tools=[WEATHER_OF_RESPONSES], **asked)
    with client.responses.create(tools=[WEATHER_OF_RESPONSES], stream=True, **asked) as events:
        *_, last = events
    return last.response


def output_of(call_id: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": "Rain"}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", BOTH)
def test_a_response_after_another_knows_what_was_sent(client, name, streams):
    response = respond(client, streams, model=name, input=THEIR_LOOP)
    for _ in range(2):
        call = next(item for item in response.output if item.type == "function_call")
        response = respond(
            client,
            streams,
            model=name,
            input=[output_of(call.call_id)],
            previous_response_id=response.id,
        )
    assert response.output_text == answer_text(6)
    last = respond(client, streams, model=name, input=SIX, previous_response_id=response.id)
    assert last.output_text == answer_text(6)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", BOTH)
def test_items_bring_it_back_too(client, name, streams):
    items: list[Any] = [{"role": "user", "content": THEIR_LOOP}]
    for _ in range(2):
        response = respond(client, streams, model=name, input=items, store=False)
        *_, call = shown = [item.to_dict() for item in response.output]
        items += [*shown, output_of(call["call_id"])]
    last = respond(client, streams, model=name, input=items, store=False)
    assert last.output_text == answer_text(6)
    items.append({"role": "user", "content": SIX})
    answer = respond(client, streams, model="fake-strict", input=items, store=False)
    assert answer.output_text == answer_text(6)


# -- /chat -----------------------------------------------------------------------------------------


def post(alice: Any, path: str, messages: list[Any], **more: Any) -> Any:
    secret = alice.new_key(scopes=["public"])[1]
    body = {"model": "fake-gemini", "messages": messages} | more
    return request("POST", path, body=body, headers={"authorization": f"Bearer {secret}"})


@pytest.mark.parametrize("name", BOTH)
def test_chat_gives_it_and_takes_it_back(alice, worker, name):
    messages = post(alice, "/chat", [said(OWN_LOOP)], model=name).json()["messages"]
    assert [m["role"] for m in messages] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert FIELDS & {*messages[1], *messages[1]["tool_calls"][0]}
    for question in (SIX, OWN_LOOP):
        answer = post(alice, "/chat", [*messages, said(question)], model=name)
        assert answer.status == 200, answer.body
    moved = post(alice, "/chat", [*messages, said(SIX)], model="fake-strict")
    assert moved.status == 200, moved.body


def test_chat_says_nothing_of_a_turn_without_calls(alice, worker):
    """Nothing goes back to the model, whoever sends it."""
    answer = post(alice, "/chat", [said(SIX)], model="fake-deepseek").json()
    shown = answer["messages"][1]
    assert shown.pop("reasoning_content").startswith(THOUGHT)
    assert shown == {
        "role": "assistant",
        "content": answer_text(6),
        "amber_sender": "none",
    }
    [turn] = Turn.objects.all()
    assert "provider_fields" not in turn.output


# -- Guests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_a_guest_sees_nothing_of_it(guest, worker, name):
    Assistant.objects.filter(pk=guest.assistant.pk).update(model=name, hide_reasoning=True)
    chat = open_chat(guest)
    for question in (OWN_LOOP, SIX):
        visitor_asks(guest, chat, question)
        wait_until(lambda: Turn.objects.filter(ended_at=None).count() == 0, timeout_seconds=30)
    turns = list(Turn.objects.order_by("created_at"))
    assert [turn.status for turn in turns] == ["completed", "completed"]
    assert ChatMessage.objects.filter(provider_fields__isnull=False).exists()
    told = visitor_gets(guest, f"chats/{chat.pk}/messages/").content.decode()
    told += json.dumps([stream_of(turn) for turn in turns])
    assert not [word for word in ("provider_fields", "signed:", "I thought of") if word in told]
