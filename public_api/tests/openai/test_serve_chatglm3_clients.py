"""What ChatGLM3's clients send and expect, with OpenAI's old client as they use it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from amber.lib.rest.api import as_amber_error
from engine.tool_calls import ToolCall
from public_api.completions.request import CompletionRequest
from public_api.completions.serializers import CompletionInput
from public_api.openai.chatglm3_functions import read_call, write_call
from public_api.openai.legacy_functions import as_tool_messages
from tests.fakes.answers import answer_text

CITY = {"name": "city", "description": "Where", "type": "str", "required": True}
DAYS = {"name": "days", "type": "list[int]", "required": False, "default": [1]}
WEATHER = {"name": "weather", "description": "The weather there.", "params": [CITY, DAYS]}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where"},
        "days": {"type": "array", "items": {"type": "integer"}, "default": [1]},
    },
    "required": ["city"],
}


def read(functions: Any, **more: Any) -> CompletionRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "functions": functions}
    given = CompletionInput(data=body | more)
    given.is_valid(raise_exception=True)
    return CompletionRequest.read(given.validated_data)


@pytest.mark.parametrize(
    ("functions", "writes_calls"),
    [({"weather": WEATHER}, True), ([WEATHER], False)],
)
def test_functions_are_read_as_they_are_written(functions: Any, writes_calls: bool) -> None:
    asked = read(functions)
    (tool,) = asked.options.tools
    assert (tool.name, tool.description) == ("weather", "The weather there.")
    assert tool.parameters == SCHEMA
    assert (asked.is_legacy, asked.writes_calls) == (True, writes_calls)


def test_a_function_without_a_name_has_that_of_its_entry() -> None:
    (tool,) = read({"clock": {"description": "Tells the time.", "params": []}}).options.tools
    assert (tool.name, tool.parameters) == ("clock", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("int", {"type": "integer"}),
        ("Optional[bool]", {"type": "boolean"}),
        ("typing.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("dict[str, int]", {"type": "object"}),
        ("number", {"type": "number"}),
        ("Decimal", {}),
        ("", {}),
    ],
)
def test_types_are_pythons_or_json_schemas(written: str, meant: Any) -> None:
    (tool,) = read([{"name": "f", "params": [{"name": "x", "type": written}]}]).options.tools
    assert tool.parameters["properties"] == {"x": meant}


@pytest.mark.parametrize(
    ("functions", "field"),
    [
        ({"weather": {"name": "clock", "params": []}}, "functions.weather.name"),
        ({"weather": []}, "functions[0]"),
        ([{"name": "f", "params": {"x": 1}}], "functions[0].params"),
        ([{"name": "f", "params": [{"type": "str"}]}], "functions[0].params[0].name"),
        (
            [{"name": "f", "params": [{"name": "x", "required": "yes"}]}],
            "functions[0].params[0].required",
        ),
        ([{"name": "f", "params": [], "parameters": {}}], "functions[0].params"),
        ([{"name": "f", "input_schema": {"type": "object"}}], "functions[0].input_schema"),
        (
            [{"name": "f", "params": [{"name": "x", "enum": "none"}]}],
            "functions[0].properties.x.enum",
        ),
    ],
)
def test_nothing_is_lost_without_a_word(functions: Any, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(functions)
    assert field in str(as_amber_error(caught.value).fields).replace(".0", "[0]")


def test_parameters_of_other_vendors_are_passed_on_as_they_are_written() -> None:
    asked = read([WEATHER], repetition_penalty=1.1, top_k=40, reasoning_effort="low")
    assert asked.options.extra == {
        "parallel_tool_calls": False,
        "repetition_penalty": 1.1,
        "top_k": 40,
        "reasoning_effort": "low",
    }
    assert isinstance(asked.options.extra["top_k"], int)


def sent_back(content: Any, name: str = "weather") -> Any:
    """What its streaming client sends after a call."""
    return as_tool_messages(
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": content},
            {"role": "function", "name": name, "content": "rain"},
        ]
    )


@pytest.mark.parametrize(
    ("content", "said", "arguments"),
    [
        ("", "", {}),
        (None, "", {}),
        ("weather\n ```python\ntool_call(city='Ulm', n=1, ok=True)\n```", "", None),
        (
            'Let me look.\nweather\n ```python\ntool_call(**{"city": "Ulm"})\n```',
            "Let me look.",
            {"city": "Ulm"},
        ),
        ("weather\n ```python\ntool_call(x=[1])\n```", "", {"arguments": "x=[1]"}),
        ("clock\n ```python\ntool_call(x=1)\n```", "clock\n ```python\ntool_call(x=1)\n```", {}),
        ("Some text", "Some text", {}),
    ],
)
def test_a_result_without_its_call_gets_one(content: Any, said: str, arguments: Any) -> None:
    _, calling, result = sent_back(content)
    (call,) = calling["tool_calls"]
    assert calling["content"] == said
    assert call["function"]["name"] == "weather"
    wanted = {"city": "Ulm", "n": 1, "ok": True} if arguments is None else arguments
    assert json.loads(call["function"]["arguments"]) == wanted
    assert result == {"role": "tool", "tool_call_id": call["id"], "content": "rain"}


def test_a_result_of_nothing_is_still_refused() -> None:
    with pytest.raises(ValidationError):
        read([WEATHER], messages=[{"role": "function", "name": "weather", "content": "rain"}])


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    read_call(f"weather\n ```python\ntool_call({text})\n```", "weather")
    read_call(text, "weather")


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(-9, 9), max_size=3))
def test_what_is_written_is_read(arguments: Any) -> None:
    call = ToolCall("c", "weather", json.dumps(arguments))
    said, function = read_call(f"Well.\n{write_call(call)}", "weather")
    assert (said, json.loads(function["arguments"])) == ("Well.", arguments)


# -- Over the wire -------------------------------------------------------------------------------


def conversation(client: Any, functions: Any) -> tuple[list[Any], str]:
    """As ChatGLM3's `openai_api_request.py` streams it: the chunks with a call, and the answer."""
    messages: list[Any] = [{"role": "user", "content": "[[fake tokens=6 call=weather]]"}]
    calling: list[Any] = []
    for _ in range(3):
        output = ""
        stream = client.chat.completions.create(
            model="fake-model", messages=messages, functions=functions, stream=True
        )
        for chunk in stream:
            output += chunk.choices[0].delta.content or ""
            if chunk.choices[0].finish_reason == "stop":
                return calling, output
            if chunk.choices[0].finish_reason == "function_call":
                call = chunk.choices[0].delta.function_call
                calling.append(chunk.choices[0].delta.to_dict())
                result = {"role": "function", "name": call.name, "content": "rain"}
                messages += [{"role": "assistant", "content": output}, result]
    raise AssertionError("it goes on calling")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("functions", [{"weather": WEATHER}, [WEATHER]])
def test_a_conversation_of_its_streaming_client(client, model, fake_provider, functions):
    (calling,), answer = conversation(client, functions)
    assert answer == answer_text(6)
    arguments = '{"city":"text"}'
    assert calling["function_call"] == {"name": "weather", "arguments": arguments}
    is_written = isinstance(functions, dict)
    assert ("tool_call(" in (calling.get("content") or "")) == is_written
    _, called, result = fake_provider.requests(contains="call=weather")[-1]["messages"]
    (sent,) = called["tool_calls"]
    assert sent["function"] == {"name": "weather", "arguments": arguments if is_written else "{}"}
    assert result == {"role": "tool", "tool_call_id": sent["id"], "content": "rain"}
    assert not called["content"]


@pytest.mark.django_db(transaction=True)
def test_openais_old_client_adds_up_the_same_stream(client, model):
    stream = client.chat.completions.create(
        model="fake-model",
        messages=[{"role": "user", "content": "[[fake call=weather]]"}],
        functions=[WEATHER],
        stream=True,
    )
    deltas = [chunk.choices[0].delta for chunk in stream]
    called = [delta.function_call for delta in deltas if delta.function_call]
    assert "".join(call.arguments for call in called) == '{"city":"text"}'
    assert "".join(call.name or "" for call in called) == "weather"
