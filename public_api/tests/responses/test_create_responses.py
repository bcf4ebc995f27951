"""/v1/responses with OpenAI's own client, against the web process's handler, a worker, a provider."""

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from amber.lib.workers.leases import StopReason
from chats.models import Chat, Turn
from chats.running.stopping import running_turns
from chats.tests.rows import new_assistant
from chats.tests.runs import running
from engine.events import TurnStatus
from public_api.tests.completions import png_url
from public_api.tests.live_server import sdk, until
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"
SLOW = "[[fake tokens=200 itl=50]]"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather there.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "strict": False,
}


def streamed(stream):
    """All events, as they came."""
    with stream:
        return [event.to_dict() for event in stream]


def types_of(events):
    """Runs of one type as one."""
    names = [event["type"] for event in events]
    return [name for n, name in enumerate(names) if not n or names[n - 1] != name]


def text_of(events):
    return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")


def ids_gone(response):
    """Without what differs from one response to the next."""
    key = response["id"].removeprefix("resp_")
    plain = json.loads(json.dumps(response).replace(key, "*"))
    return plain | {"created_at": 0, "completed_at": 0}


# -- It works ------------------------------------------------------------------------------------


def test_answers_a_text(client, model):
    response = client.responses.create(model="fake-model", input=SIX, metadata={"a": "b"})
    said = response.to_dict()
    assert response.output_text == answer_text(6)
    assert (response.status, response.model, response.object) == (
        "completed",
        "fake-model",
        "response",
    )
    assert response.metadata == {"a": "b"}
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens == 6
    assert response.usage.total_tokens == response.usage.input_tokens + 6
    assert said["error"] is None
    assert said["incomplete_details"] is None
    assert said["completed_at"] >= said["created_at"] > 1_600_000_000
    turn = Turn.objects.get()
    assert response.id == f"resp_{turn.pk.hex}"
    assert not Chat.objects.exists()


def test_streams_typed_events(client, model):
    events = streamed(client.responses.create(model="fake-model", input=SIX, stream=True))
    assert types_of(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert text_of(events) == answer_text(6)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert events[0]["response"]["status"] == "in_progress"
    assert events[0]["response"]["output"] == []
    done = next(e for e in events if e["type"] == "response.output_item.done")
    assert events[-1]["response"]["output"] == [done["item"]]


def test_what_is_streamed_is_what_is_answered_whole_and_retrieved(client, model):
    whole = client.responses.create(model="fake-model", input=SIX).to_dict()
    events = streamed(client.responses.create(model="fake-model", input=SIX, stream=True))
    last = events[-1]["response"]
    assert ids_gone(last) == ids_gone(whole)
    assert client.responses.retrieve(last["id"]).to_dict() | {"completed_at": 0} == last | {
        "completed_at": 0
    }


def test_the_clients_own_streaming_helper_works(client, model):
    with client.responses.stream(model="fake-model", input=SIX) as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.completed" in seen
    assert final.output_text == answer_text(6)


def test_an_assistant_answers_with_its_own_tools(client, alice, new_model):
    new_model("fake-parallel-tools")
    assistant = new_assistant(alice, model="fake-parallel-tools")
    response = client.responses.create(model=f"assistant:{assistant.slug}", input="both")
    assert [item["type"] for item in response.to_dict()["output"]] == ["message"]
    assert response.output_text


def test_input_items_instructions_and_options_reach_the_model(client, new_model, fake_provider):
    new_model("fake-echo")
    items = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "One"}]},
        {
            "type": "message",
            "id": "msg_x",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Two", "annotations": []}],
        },
        {"type": "reasoning", "id": "rs_x", "summary": []},
        {"role": "user", "content": "Three, this very one 7f3a"},
    ]
    response = client.responses.create(
        model="fake-echo",
        input=items,
        instructions="Be brief.",
        temperature=0.25,
        top_p=0.5,
        max_output_tokens=77,
        parallel_tool_calls=False,
        reasoning={"effort": "low"},
        text={"verbosity": "high"},
        store=True,
    )
    said = json.loads(response.output_text)
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
    assert "Be brief." in said[0]["content"]
    assert "Be kind." in said[0]["content"]
    assert [m["content"] for m in said[1:]] == ["One", "Two", "Three, this very one 7f3a"]
    asked = fake_provider.requests("7f3a")[-1]
    assert (asked["temperature"], asked["top_p"]) == (0.25, 0.5)
    assert 77 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    assert (asked["reasoning_effort"], asked["verbosity"]) == ("low", "high")
    told = response.to_dict()
    assert told["reasoning"]["effort"] == "low"
    assert (told["instructions"], told["temperature"], told["top_p"]) == ("Be brief.", 0.25, 0.5)
    assert (told["max_output_tokens"], told["parallel_tool_calls"]) == (77, False)


def test_structured_text(client, model):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "name": "number", "schema": schema, "strict": True}
    response = client.responses.create(model="fake-model", input="Hi", text={"format": form})
    assert json.loads(response.output_text) == {"n": 1}
    assert response.to_dict()["text"]["format"] == form


def test_images_are_seen(client, new_model):
    new_model("fake-echo", vision=True)
    content = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": png_url(), "detail": "auto"},
    ]
    response = client.responses.create(
        model="fake-echo", input=[{"role": "user", "content": content}]
    )
    (asked,) = json.loads(response.output_text)
    assert {part["type"] for part in asked["content"]} == {"text", "image_url"}


def test_an_answer_that_is_cut_short_is_incomplete(client, new_model):
    new_model("fake-length")
    whole = client.responses.create(model="fake-length", input=SIX).to_dict()
    assert whole["status"] == "incomplete"
    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}
    assert whole["output"][0]["status"] == "incomplete"
    events = streamed(client.responses.create(model="fake-length", input=SIX, stream=True))
    assert events[-1]["type"] == "response.incomplete"
    assert ids_gone(events[-1]["response"]) == ids_gone(whole)


# -- The client's own functions --------------------------------------------------------------------


def call_weather(client, **more):
    return client.responses.create(
        model="fake-model",
        input="Will it rain?",
        tools=[WEATHER],
        tool_choice={"type": "function", "name": "weather"},
        **more,
    )


def test_a_client_answers_a_call_after_the_response(client, model):
    first = call_weather(client)
    said = first.to_dict()
    (call,) = said["output"]
    assert (call["type"], call["name"]) == ("function_call", "weather")
    assert json.loads(call["arguments"]) == {"city": "text"}
    assert said["tools"] == [WEATHER]
    assert said["tool_choice"] == {"type": "function", "name": "weather"}
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Rain."}
    second = client.responses.create(
        model="fake-model", input=[result], previous_response_id=first.id, tools=[WEATHER]
    )
    assert second.status == "completed"
    assert second.previous_response_id == first.id
    assert second.output_text


def test_a_schema_may_hold_numbers_that_postgres_widens(client, model):
    """jsonb gives 1e30 back as an integer of 31 digits."""
    amount = {"type": "number", "maximum": 1e30}
    tools = [WEATHER | {"parameters": {"type": "object", "properties": {"amount": amount}}}]
    made = client.responses.create(model="fake-model", input=SIX, tools=tools)
    whole = client.responses.retrieve(made.id).to_dict()
    last = streamed(client.responses.retrieve(made.id, stream=True))[-1]["response"]
    for told in (whole, last):
        assert told["tools"][0]["parameters"]["properties"] == {"amount": amount}


def test_a_call_is_streamed_as_an_item_of_its_own(client, model):
    events = streamed(call_weather(client, stream=True))
    assert types_of(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[2]["item"]["arguments"] == ""
    assert events[3]["delta"] == events[4]["arguments"] == events[5]["item"]["arguments"]
    whole = call_weather(client).to_dict()
    told = ids_gone(events[-1]["response"])
    calls = [item.pop("call_id") for r in (told, whole) for item in r["output"]]
    assert len(set(calls)) == 2
    assert told == ids_gone(whole)


@pytest.mark.parametrize("answered", [[], ["call_unknown"]], ids=["not at all", "another"])
def test_calls_must_be_answered_by_what_follows(client, model, answered):
    first = call_weather(client)
    items = [{"type": "function_call_output", "call_id": c, "output": "x"} for c in answered]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(
            model="fake-model",
            input=[*items, {"role": "user", "content": "Well?"}],
            previous_response_id=first.id,
        )
    assert caught.value.param == "input"


def test_a_round_without_previous_response_sends_everything_again(client, model):
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "Rain."}
    question = {"role": "user", "content": "Will it rain?"}
    response = client.responses.create(
        model="fake-model", input=[question, call, result], tools=[WEATHER]
    )
    assert response.output_text


def test_an_earlier_item_may_be_named(client, new_model):
    new_model("fake-model", default=True)
    new_model("fake-echo")
    first = client.responses.create(model="fake-model", input=SIX)
    response = client.responses.create(
        model="fake-echo",
        input=[
            {"role": "user", "content": "One"},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": "Two"},
        ],
    )
    said = [m["content"] for m in json.loads(response.output_text)]
    assert said == ["One", answer_text(6), "Two"]


# -- What goes wrong ---------------------------------------------------------------------------------


def test_a_failure_before_the_first_byte_is_an_error_with_its_status(client, new_model):
    new_model("fake-400")
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="fake-400", input="Hi", stream=stream)
        assert caught.value.code == "provider_rejected"


def test_a_failure_after_it_is_an_event(client, new_model):
    new_model("fake-cut-mid")
    events = streamed(client.responses.create(model="fake-cut-mid", input="Hi", stream=True))
    last = events[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "server_error"
    assert last["response"]["output"][0]["content"][0]["text"] == text_of(events)
    assert text_of(events)
    told = client.responses.retrieve(last["response"]["id"]).to_dict()
    assert told["status"] == "failed"
    assert told["output"] == last["response"]["output"]


BAD: dict[str, tuple[dict[str, Any], int, str | None]] = {
    "no model": ({"model": None}, 400, "model"),
    "unknown model": ({"model": "no-such"}, 404, "model"),
    "no input": ({"input": None}, 400, "input"),
    "empty input": ({"input": []}, 400, "input"),
    "nobody asks": ({"input": [{"role": "assistant", "content": "Hi"}]}, 400, None),
    "unknown item": ({"input": [{"type": "computer_call"}]}, 400, "input[0].type"),
    "bad part": (
        {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        400,
        "input[0].content[0]",
    ),
    "no such item": ({"input": [{"type": "item_reference", "id": "msg_1"}]}, 404, "input"),
    "hot": ({"temperature": 3}, 400, "temperature"),
    "built-in tool": ({"tools": [{"type": "web_search"}]}, 400, "tools[0].type"),
    "bad schema": (
        {"tools": [{"type": "function", "name": "f", "parameters": {"type": 1}}]},
        400,
        "tools[0].parameters.type",
    ),
    "unknown function": ({"tool_choice": {"type": "function", "name": "g"}}, 400, "tool_choice"),
    "format without schema": ({"text": {"format": {"type": "json_schema"}}}, 400, None),
    "numbers as metadata": ({"metadata": {"a": 1}}, 400, "metadata.a"),
    "unstored background": ({"background": True, "store": False}, 400, "background"),
    "unknown previous": ({"previous_response_id": "resp_1"}, 404, "previous_response_id"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_name_what_is_wrong(client, model, case):
    change, status, param = BAD[case]
    body = {"model": "fake-model", "input": "Hi"} | change
    body = {name: value for name, value in body.items() if value is not None}
    with pytest.raises(openai.APIStatusError) as caught:
        client.post("/responses", body=body, cast_to=Response)
    assert caught.value.status_code == status
    assert caught.value.param == param or param is None
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"]
    assert not Turn.objects.exists()


def test_a_worker_that_dies_after_the_first_word_breaks_the_stream_off(client, model):
    """What was shown cannot be taken back; that the telling ends says nothing of the response."""
    with client.responses.create(model="fake-model", input=SLOW, stream=True) as stream:
        events = iter(stream)
        while next(events).type != "response.output_text.delta":
            pass
        turn = Turn.objects.get()
        running_turns.stop(turn.pk, StopReason.RELEASED)
        until(lambda: Turn.objects.get(pk=turn.pk).status == TurnStatus.QUEUED)
        with running(turn, "w2"), pytest.raises(openai.APIError) as caught:
            list(events)
    assert caught.value.code == "worker_lost"


def test_another_tenant_finds_nothing(client, address, model, mallory):
    first = client.responses.create(model="fake-model", input=SIX)
    with sdk(address, mallory.new_key(scopes=["public"])[1]) as other:
        for ask in (
            lambda: other.responses.retrieve(first.id),
            lambda: other.responses.cancel(first.id),
            lambda: other.responses.delete(first.id),
            lambda: other.responses.create(
                model="fake-model", input="Hi", previous_response_id=first.id
            ),
            lambda: other.responses.create(
                model="fake-model",
                input=[{"type": "item_reference", "id": first.output[0].id}],
            ),
        ):
            with pytest.raises(openai.NotFoundError):
                ask()
    assert client.responses.retrieve(first.id).status == "completed"


def test_a_guests_responses_are_theirs(client, model):
    first = client.responses.create(model="fake-model", input=SIX, user="ann")
    assert client.responses.retrieve(first.id, extra_query={"user": "ann"}).id == first.id
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id, extra_query={"user": "rob"})


def test_a_wrong_key_is_401(address, model):
    with sdk(address, "amb_live_wrong") as nobody:
        for ask in (
            lambda: nobody.responses.create(model="fake-model", input="Hi"),
            lambda: nobody.responses.retrieve("resp_x"),
        ):
            with pytest.raises(openai.AuthenticationError) as caught:
                ask()
            assert caught.value.code == "invalid_api_key"


def test_a_turn_that_is_no_response_is_none(client, model):
    client.chat.completions.create(model="fake-model", messages=[{"role": "user", "content": SIX}])
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(f"resp_{Turn.objects.get().pk.hex}")
