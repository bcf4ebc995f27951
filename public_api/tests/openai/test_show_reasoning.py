"""What a model thinks, as programs see it: `reasoning_content` of chat completions, items of reasoning
of responses, streamed and whole; and not where the assistant hides it.
"""

from typing import Any

import pytest

from chats.messages.hidden_fields import SEALED
from chats.models import Turn
from chats.tests.rows import new_assistant
from engine.provider import openai_model
from engine.provider_fields import REASONING
from public_api.openai.messages import NOBODY, SENDER, read_sender_mark, sender_mark
from public_api.tests.completions import WEATHER, ask, deltas, said, streamed
from public_api.tests.test_return_provider_fields import (
    OWN_LOOP,
    THEIR_LOOP,
    answered_without_fields,
    grown,
    output_of,
    post,
    whole,
)
from tests.fakes.answers import answer_text
from tests.fakes.habits import THINKERS

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"


@pytest.fixture(autouse=True)
def models(new_model, monkeypatch):
    monkeypatch.setattr(openai_model, "_mends", {})
    for name in (*THINKERS, "strict", "json-mistral", "gemini"):
        new_model(f"fake-{name}")


@pytest.mark.parametrize("answered", [whole, grown])
@pytest.mark.parametrize("thinker", THINKERS)
def test_a_completion_has_what_was_thought(client, thinker, answered):
    message = answered(client, [said(SIX)], model=f"fake-{thinker}")
    assert message["content"].strip() == answer_text(6).strip()
    assert message[REASONING].startswith("I thought of ")
    assert message[REASONING].endswith(" for a while.")
    assert SENDER not in message


def test_thoughts_come_before_the_text(client):
    names = [
        name
        for delta in deltas(streamed(client, [said(SIX)], model="fake-deepseek"))
        for name in ("reasoning_content", "content")
        if delta.get(name)
    ]
    assert names == sorted(names, reverse=True)
    assert {*names} == {"reasoning_content", "content"}


def test_it_is_counted(client):
    usage = ask(client, [said(SIX)], model="fake-deepseek").usage
    assert 0 < usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens


@pytest.mark.parametrize("answered", [whole, grown])
def test_the_thoughts_of_all_steps_are_told_and_those_of_the_last_go_back(
    client, alice, answered, fake_provider
):
    """The assistant's own tool first, then the client's: the model gets what belongs to its call."""
    new_assistant(alice, model="fake-deepseek", slug="ada")
    mixed = f"{OWN_LOOP} "
    history: list[Any] = [said(f"c7c7 {mixed}")]
    first = answered(client, history, model="assistant:ada", tools=[WEATHER])
    assert first[REASONING].count("I thought of") == 3  # two rounds, and the answer
    assert first[SENDER].endswith(f"+{first[REASONING].rindex('I thought')}")
    history += [first, said(THEIR_LOOP)]
    called = answered(client, history, model="assistant:ada", tools=[WEATHER])
    history += answered_without_fields(called)
    history[-2] |= {name: called[name] for name in (REASONING, SENDER)}
    last = answered(client, history, model="assistant:ada", tools=[WEATHER])
    assert last.get("tool_calls") or last["content"]
    assert not openai_model._mends


@pytest.mark.parametrize("thinker", ["mistral", "think-tags"])
def test_what_came_in_no_field_goes_back_to_nobody(client, thinker):
    history: list[Any] = [said(f"{THEIR_LOOP[:-2]} rounds=1]]")]
    message = whole(client, history, model=f"fake-{thinker}", tools=[WEATHER])
    assert message[SENDER] == NOBODY
    (call,) = message["tool_calls"]
    history += [message, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]
    answer = whole(client, history, model="fake-strict", tools=[WEATHER])
    assert answer["content"]
    assert not openai_model._mends


@pytest.mark.parametrize("answered", [whole, grown])
def test_an_assistant_hides_it(client, alice, answered):
    new_assistant(alice, model="fake-deepseek", slug="ada", hide_reasoning=True)
    message = answered(client, [said(THEIR_LOOP)], model="assistant:ada", tools=[WEATHER])
    assert REASONING not in message
    assert "I thought of" not in str(message)
    history: list[Any] = [said(THEIR_LOOP)]
    for _ in range(2):  # the client has no word of it, and its model all
        _, result = answered_without_fields(message)
        history += [message, result]
        message = answered(client, history, model="assistant:ada", tools=[WEATHER])
    assert message["content"] == answer_text(6)
    assert not openai_model._mends


def test_marks_say_where_what_goes_back_begins():
    fields = {REASONING: "one\n\ntwo", "state": 1}
    assert read_sender_mark(sender_mark("s", 5), fields) == ("s", {REASONING: "two", "state": 1})
    assert read_sender_mark(sender_mark("s", 0), fields) == ("s", fields)
    assert read_sender_mark(sender_mark("s", 8), fields) == ("s", {"state": 1})
    assert read_sender_mark("s+" + "9" * 5_000, fields) == ("s", fields)
    assert read_sender_mark("s+-1", fields) == ("s", fields)


def test_the_proxy_has_it_in_every_message(alice, worker):
    answer = post(alice, "/chat", [said(OWN_LOOP)], model="fake-deepseek")
    assert answer.status == 200
    messages = answer.json()["messages"]
    replies = [m for m in messages if m["role"] == "assistant"]
    assert len(replies) == 3
    assert all(m[REASONING].startswith("I thought of ") for m in replies)
    answer = post(alice, "/chat", [*messages, said(SIX)], model="fake-deepseek")
    assert answer.status == 200
    assert not openai_model._mends


# -- /v1/responses ---------------------------------------------------------------------------------


def items_of(response: Any) -> list[Any]:
    return [item.to_dict() for item in response.output]


@pytest.mark.parametrize("thinker", THINKERS)
def test_a_response_has_an_item_of_reasoning(client, thinker):
    response = client.responses.create(model=f"fake-{thinker}", input=SIX)
    thought, message = items_of(response)
    assert (thought["type"], message["type"]) == ("reasoning", "message")
    assert thought["content"][0]["text"].startswith("I thought of ")
    assert message["content"][0]["text"].strip() == answer_text(6).strip()
    assert items_of(client.responses.retrieve(response.id)) == [thought, message]
    assert response.usage.output_tokens_details.reasoning_tokens


@pytest.mark.parametrize("asked", [SIX, OWN_LOOP, THEIR_LOOP])
def test_its_events_add_up_to_it(client, alice, asked):
    new_assistant(alice, model="fake-deepseek", slug="ada")
    tools = [{"type": "function", **WEATHER["function"]}]
    with client.responses.create(
        model="assistant:ada", input=asked, tools=tools, stream=True
    ) as events:
        told = list(events)
    last = told[-1].response
    grown_text: dict[int, str] = {}
    for event in told:
        if event.type == "response.reasoning_text.delta":
            grown_text[event.output_index] = grown_text.get(event.output_index, "") + event.delta
    ((place, text),) = grown_text.items()
    assert items_of(last)[place]["content"][0]["text"] == text
    done = {e.output_index: e.item.to_dict() for e in told if e.type.endswith("output_item.done")}
    assert [done[n] for n in sorted(done)] == items_of(last)
    numbers = [event.sequence_number for event in told]
    assert numbers == sorted({*numbers})


def test_a_stream_goes_on_within_a_thought(client):
    response = client.responses.create(
        model="fake-deepseek", input=SIX, stream=True, background=True
    )
    with response as events:
        told = list(events)
    (first, *_) = (e for e in told if e.type == "response.reasoning_text.delta")
    thought = told[-1].response.output[0].content[0].text
    with client.responses.retrieve(
        told[0].response.id, stream=True, starting_after=first.sequence_number + 2
    ) as events:
        rest = list(events)
    more = "".join(e.delta for e in rest if e.type == "response.reasoning_text.delta")
    assert thought == first.delta + thought[len(first.delta) :][:2] + more
    assert rest[-1].sequence_number == told[-1].sequence_number


def test_reasoning_goes_back_as_an_item_too(client):
    """As clients do that send the output of a response as the next input."""
    tools = [{"type": "function", **WEATHER["function"]}]
    about: Any = {"model": "fake-deepseek", "tools": tools}
    first = client.responses.create(input=THEIR_LOOP, store=False, **about)
    call = next(item for item in first.output if item.type == "function_call")
    asked = [{"role": "user", "content": THEIR_LOOP}, *items_of(first), output_of(call.call_id)]
    again = client.responses.create(input=asked, store=False, **about)
    assert again.status == "completed"
    assert not openai_model._mends


def test_hidden_thoughts_are_never_taken_along_to_another_model(client, alice):
    """Its turn, and the messages of a chat that it goes on in, are not the hiding assistant's."""
    new_assistant(alice, model="fake-deepseek", slug="ada", hide_reasoning=True)
    tools = [{"type": "function", **WEATHER["function"]}]
    first = client.responses.create(model="assistant:ada", input=THEIR_LOOP, tools=tools)
    call = next(item for item in first.output if item.type == "function_call")
    named: Any = [said(THEIR_LOOP), {"type": "item_reference", "id": call.id}]
    result = output_of(call.call_id)
    other: Any = {"model": "fake-deepseek", "tools": tools}
    client.responses.create(input=[*named, result], **other)
    client.responses.create(input=[result], previous_response_id=first.id, **other)
    inputs = Turn.objects.exclude(input=None).values_list("input", flat=True)
    assert len(inputs) == 3
    assert SEALED in str(list(inputs))
    assert "I thought of" not in str(list(inputs))
    assert not openai_model._mends  # the model got its own of it
