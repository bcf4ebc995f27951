"""What a request of POST /v1/chat/completions may hold: read as values, and refused by name."""

from typing import Any

import pytest
from rest_framework.exceptions import ValidationError

from amber.lib.rest.api import as_amber_error
from chats.context.call_options import CallOptions
from engine.provider.model import ModelRequest
from engine.tools import MAX_OFFERED_TOOLS, ToolSpec
from public_api.completions.request import CompletionRequest
from public_api.completions.serializers import CompletionInput
from public_api.openai.errors import error_object
from public_api.openai.function_fields import MAX_TOOLS_BYTES

USER = {"role": "user", "content": "Hi"}
GOOD = {"model": "m", "messages": [USER]}
WEATHER = {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}


def tool(name: str = "weather", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def read(**more: Any) -> CompletionRequest:
    given = CompletionInput(data=GOOD | more)
    given.is_valid(raise_exception=True)
    return CompletionRequest.read(given.validated_data)


def refused(body: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(ValidationError) as caught:
        CompletionInput(data=body).is_valid(raise_exception=True)
    return error_object(as_amber_error(caught.value))


# -- Read ----------------------------------------------------------------------------------------


def test_the_least_there_can_be():
    asked = read()
    assert asked.options == CallOptions(is_unattended=True)
    assert (asked.streams, asked.includes_usage, asked.user, asked.chat_id) == (
        False,
        False,
        "",
        "",
    )


def test_null_is_as_good_as_nothing():
    names = set(CompletionInput().fields) - {"model", "messages"}
    assert read(**dict.fromkeys(names)) == read()


def test_tools_become_specs():
    asked = read(tools=[{"type": "function", "function": WEATHER}, tool("plain", strict=True)])
    weather, plain = asked.options.tools
    assert weather == ToolSpec(
        "weather", "", {"type": "object", "properties": {"city": {"type": "string"}}}
    )
    assert (plain.parameters, plain.strict) == ({"type": "object", "properties": {}}, True)


def test_functions_of_old_are_called_one_at_a_time():
    asked = read(functions=[WEATHER], function_call={"name": "weather"})
    assert asked.is_legacy
    assert asked.options.tool_choice == {"type": "function", "function": {"name": "weather"}}
    assert asked.options.extra == {"parallel_tool_calls": False}


def test_options_are_kept_whole_with_the_turn():
    asked = read(
        tools=[tool(strict=False)],
        tool_choice="required",
        temperature=0,
        top_p=0.1,
        stop=["a", "b"],
        seed=0,
        max_tokens=5,
        response_format={"type": "json_object"},
        parallel_tool_calls=True,
    ).options
    assert CallOptions.read(asked.as_json()) == asked
    assert CallOptions().as_json() == {}
    made = asked.apply_to(ModelRequest([], tools=asked.tools), max_output_tokens=3)
    assert (made.temperature, made.seed, made.max_output_tokens) == (0, 0, 3)


def test_what_is_not_given_is_the_assistants_to_choose():
    made = CallOptions(tool_choice="auto").apply_to(
        ModelRequest([], temperature=0.3, top_p=0.4), max_output_tokens=3
    )
    assert (made.temperature, made.top_p, made.max_output_tokens) == (0.3, 0.4, None)
    assert made.tool_choice is None, "nothing can be called"


# -- Refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "param", "code"),
    [
        ({"model": None}, "model", "missing_required_parameter"),
        ({"model": 1}, "model", "invalid_type"),
        ({"model": ""}, "model", "empty_string"),
        ({"messages": None}, "messages", "missing_required_parameter"),
        ({"messages": []}, "messages", "empty_array"),
        ({"messages": {}}, "messages", "invalid_type"),
        ({"messages": [USER] * 40_001}, "messages", "above_max_length"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value"),
        ({"messages": [USER, {"content": "x"}]}, "messages[1].role", "missing_required_parameter"),
        (
            {"messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]},
            "messages[1].tool_call_id",
            "invalid_value",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0]",
            "invalid_value",
        ),
        ({"stream": "true"}, "stream", "invalid_type"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage", "invalid_type"),
        ({"n": 2}, "n", "unsupported_value"),
        ({"n": "1"}, "n", "invalid_type"),
        ({"temperature": 2.1}, "temperature", "integer_above_max_value"),
        ({"temperature": -1}, "temperature", "integer_below_min_value"),
        ({"temperature": "1"}, "temperature", "invalid_type"),
        ({"temperature": True}, "temperature", "invalid_type"),
        ({"top_p": 1.5}, "top_p", "integer_above_max_value"),
        ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
        ({"max_tokens": 10**9}, "max_tokens", "integer_above_max_value"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens", "invalid_type"),
        ({"stop": ["a"] * 5}, "stop", "above_max_length"),
        ({"stop": [""]}, "stop[0]", "empty_string"),
        ({"stop": 1}, "stop", "invalid_type"),
        ({"seed": 2**63}, "seed", "integer_above_max_value"),
        ({"user": "x" * 151}, "user", "above_max_length"),
        ({"metadata": []}, "metadata", "invalid_type"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
        (
            {"response_format": {"type": "json_schema"}},
            "response_format.json_schema",
            "missing_required_parameter",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "two words"}}},
            "response_format.json_schema.name",
            "invalid_value",
        ),
        (
            {"tools": [tool(f"t{n}") for n in range(MAX_OFFERED_TOOLS + 1)]},
            "tools",
            "above_max_length",
        ),
        ({"tools": [tool(), tool()]}, "tools", "invalid_value"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
            "tools[0].type",
            "invalid_value",
        ),
        ({"tools": [tool("two words")]}, "tools[0].function.name", "invalid_value"),
        ({"tools": [tool(1)]}, "tools[0].function.name", "invalid_type"),  # type: ignore[arg-type]
        (
            {"tools": [tool(parameters={"type": "array"})]},
            "tools[0].function.parameters.type",
            "invalid_value",
        ),
        (
            {"tools": [tool(parameters={"properties": {"a": {"type": "text"}}})]},
            "tools[0].function.parameters.properties.a.type",
            "invalid_value",
        ),
        (
            {"tools": [tool(f"t{n}", description="x" * 9_000) for n in range(40)]},
            "tools",
            "invalid_value",
        ),
        ({"tool_choice": "sometimes"}, "tool_choice", "invalid_type"),
        (
            {"tools": [tool()], "tool_choice": tool("other")},
            "tool_choice",
            "invalid_value",
        ),
        ({"tools": [tool()], "functions": [WEATHER]}, "functions", "invalid_value"),
        ({"function_call": {"name": 1}}, "function_call", "invalid_type"),
    ],
    ids=range(44),
)
def test_what_is_wrong_is_named(given, param, code):
    told = refused(GOOD | given)
    assert told["param"] == param, told
    assert told["code"] == code, told
    assert told["type"] == "invalid_request_error"
    assert told["message"]


def test_forty_schemas_are_more_than_a_model_reads():
    assert MAX_TOOLS_BYTES < 40 * 9_000
