import copy
from typing import Any

import orjson
import pytest

from engine.messages import ProviderMessage
from engine.provider.dialects import DIALECTS
from engine.provider.model import ModelRequest, as_json
from engine.tool_calls import ChatToolCall
from engine.tools import ToolSpec

WEATHER = ToolSpec(
    "weather",
    "Tells the weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "days": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            "tags": {"type": ["null", "array"]},
            "any": True,
        },
        "required": ["city"],
    },
)
CLOCK = ToolSpec("clock", "Tells the time.")


def call(call_id: str, name: str, arguments: str) -> ChatToolCall:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def request_fields(messages: list[ProviderMessage], *, dialect: str, **asked: Any) -> Any:
    return DIALECTS[dialect].request_fields(ModelRequest(messages, **asked))


def result(call_id: str, content: str) -> ProviderMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


HISTORY: list[ProviderMessage] = [
    {"role": "system", "content": "You are Amber."},
    {"role": "user", "content": "Weather and time?"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            call("c1", "weather", '{"city": "Oslo", "wet": true, "n": null}'),
            call("c2", "clock", "{}"),
        ],
    },
    result("c1", "rain"),
    result("c2", "noon"),
    {"role": "assistant", "content": "Rain at noon."},
]

FUNCTION_CALLS = [
    {"name": "weather", "arguments": '{"city": "Oslo", "wet": true, "n": null}'},
    {"name": "clock", "arguments": "{}"},
]

GOLDEN: dict[str, list[Any]] = {
    "tools": HISTORY,
    "functions": [
        *HISTORY[:2],
        {"role": "assistant", "content": "Let me look.", "function_call": FUNCTION_CALLS[0]},
        {"role": "function", "name": "weather", "content": "rain"},
        {"role": "assistant", "content": None, "function_call": FUNCTION_CALLS[1]},
        {"role": "function", "name": "clock", "content": "noon"},
        HISTORY[-1],
    ],
    "chatglm3": [
        *HISTORY[:2],
        {"role": "assistant", "content": "Let me look."},
        {
            "role": "assistant",
            "content": "weather\n ```python\ntool_call(city='Oslo', wet=True, n=None)\n```",
            "function_call": FUNCTION_CALLS[0],
        },
        {"role": "function", "name": "weather", "content": "rain"},
        {
            "role": "assistant",
            "content": "clock\n ```python\ntool_call()\n```",
            "function_call": FUNCTION_CALLS[1],
        },
        {"role": "function", "name": "clock", "content": "noon"},
        HISTORY[-1],
    ],
}


@pytest.mark.parametrize("dialect", GOLDEN)
def test_a_parallel_reply_is_replayed(dialect: Any) -> None:
    before = copy.deepcopy(HISTORY)

    assert request_fields(HISTORY, dialect=dialect) == {"messages": GOLDEN[dialect]}
    assert before == HISTORY


def test_tools_are_offered_in_each_dialect() -> None:
    weather = {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": WEATHER.parameters,
    }
    clock = {"name": "clock", "description": "Tells the time.", "parameters": {"type": "object"}}

    def offered(dialect: Any) -> dict[str, Any]:
        asked: Any = {"tools": [WEATHER, CLOCK], "tool_choice": "required"}
        fields: dict[str, Any] = request_fields([], dialect=dialect, **asked)
        del fields["messages"]
        return fields

    assert offered("tools") == {
        "tools": [
            {"type": "function", "function": weather},
            {"type": "function", "function": clock},
        ],
        "tool_choice": "required",
    }
    assert offered("functions") == {"functions": [weather, clock], "function_call": "auto"}
    params = [
        {"name": "city", "description": "Where", "type": "string", "required": True},
        {"name": "days", "description": "", "type": "integer", "required": False},
        {"name": "tags", "description": "", "type": "array", "required": False},
        {"name": "any", "description": "", "type": "string", "required": False},
    ]
    assert offered("chatglm3") == {
        "functions": {
            "weather": {
                "name": "weather",
                "description": "Tells the weather.",
                "params": params,
            },
            "clock": {"name": "clock", "description": "Tells the time.", "params": []},
        }
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", "none"),
        ("auto", "auto"),
        ("required", "auto"),
        ({"type": "function", "function": {"name": "clock"}}, {"name": "clock"}),
    ],
)
def test_a_choice_is_translated(choice: Any, expected: Any) -> None:
    fields = request_fields([], tools=[CLOCK], tool_choice=choice, dialect="functions")
    assert fields["function_call"] == expected


def test_no_tools_no_fields() -> None:
    for dialect in ("tools", "functions", "chatglm3"):
        assert request_fields([], tool_choice="auto", dialect=dialect) == {"messages": []}


def test_an_id_used_again_gets_its_own_result() -> None:
    history: list[ProviderMessage] = []
    for answer in ("first", "second"):
        history.append(
            {"role": "assistant", "content": None, "tool_calls": [call("c", "clock", "{}")]}
        )
        history.append(result("c", answer))

    replayed = request_fields(history, dialect="functions")["messages"]
    assert [m["content"] for m in replayed if m["role"] == "function"] == ["first", "second"]


def test_what_does_not_pair_up_is_left_out() -> None:
    history: list[ProviderMessage] = [
        result("nobody", "lost"),
        {"role": "assistant", "content": None, "tool_calls": [call("c", "clock", "no json")]},
    ]
    replayed = request_fields(history, dialect="chatglm3")["messages"]
    assert [m["content"] for m in replayed] == [
        "clock\n ```python\ntool_call(arguments='no json')\n```"
    ]


def test_half_a_character_does_not_stop_a_request() -> None:
    assert orjson.loads(as_json({"text": "a\ud83d"})) == {"text": "a?"}
    assert orjson.loads(as_json({"text": "für 😀"})) == {"text": "für 😀"}
