"""Write requests for older servers: `functions` and `chatglm3` made from `tools`.

Pure. The rest of Amber knows only tool calls; what comes back is turned into them by
`engine.provider.chunks`. Formats: https://platform.openai.com/docs/api-reference/chat/create
(`tools`, and the deprecated `functions`), https://github.com/THUDM/ChatGLM3 (`openai_api_demo`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import orjson

from engine.messages import Content, ProviderMessage, calls_in
from engine.provider.model import ToolDialect
from engine.tool_calls import FunctionCall
from engine.tools import NamedFunction, ToolChoice, ToolSpec


class CallingMessage(TypedDict):
    """A message that calls one function, as `functions` and `chatglm3` know it."""

    role: Literal["assistant"]
    content: Content | None
    function_call: NotRequired[FunctionCall]


class FunctionMessage(TypedDict):
    role: Literal["function"]
    name: str
    content: str


class Function(TypedDict):
    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: NotRequired[bool]


class Param(TypedDict):
    name: str
    description: str
    type: str
    required: bool


class ChatGLM3Function(TypedDict):
    name: str
    description: str
    params: list[Param]


def request_fields(
    messages: Sequence[ProviderMessage],
    *,
    tools: Sequence[ToolSpec] = (),
    tool_choice: ToolChoice | None = None,
    dialect: ToolDialect = "tools",
) -> dict[str, Any]:
    """Return the fields of a request that depend on the dialect; those without content are left
    out.

    `messages` are in the `tools` form and are not changed.
    """
    if dialect == "tools":
        fields: dict[str, Any] = {"messages": list(messages)}
        if tools:
            fields["tools"] = [{"type": "function", "function": _function(t)} for t in tools]
            if tool_choice is not None:
                fields["tool_choice"] = tool_choice
        return fields
    replay = _one_call_at_a_time(messages, in_chatglm3=dialect == "chatglm3")
    fields = {"messages": list(replay)}
    if tools and dialect == "chatglm3":
        fields["functions"] = {tool.name: _chatglm3_function(tool) for tool in tools}
    elif tools:
        fields["functions"] = [_function(tool) for tool in tools]
        if tool_choice is not None:
            fields["function_call"] = _function_choice(tool_choice)
    return fields


def _function(tool: ToolSpec) -> Function:
    function: Function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return function


def _function_choice(choice: ToolChoice) -> str | NamedFunction:
    """Return the choice for `functions`, which has no "required"; "auto" is the nearest."""
    if isinstance(choice, str):
        return choice if choice in ("auto", "none") else "auto"
    return {"name": choice["function"]["name"]}


def _one_call_at_a_time(
    messages: Sequence[ProviderMessage], *, in_chatglm3: bool
) -> Iterator[ProviderMessage | CallingMessage | FunctionMessage]:
    """Yield parallel calls and their results as call, result, call, result.

    A call without a result stands alone; a result without a call is dropped, as it would need
    a name that nobody knows.
    """
    results = _results_by_reply(messages)
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            continue
        calls = calls_in(message)
        if not calls:
            yield message
            continue
        text: Content | None = message["content"]
        if text and in_chatglm3:  # its server reads the content of a call as code
            yield {"role": "assistant", "content": text}
            text = None
        for call in calls:
            yield _calling(call["function"], text, in_chatglm3=in_chatglm3)
            text = None
            if call["id"] in results[i]:
                content = results[i][call["id"]]
                name = call["function"]["name"]
                yield {"role": "function", "name": name, "content": content}


def _results_by_reply(messages: Sequence[ProviderMessage]) -> dict[int, dict[str, str]]:
    """Map the position of a calling message to its results by call id."""
    results: dict[int, dict[str, str]] = {}
    latest: dict[str, str] = {}
    for i, message in enumerate(messages):
        if calls_in(message):
            latest = results[i] = {}
        elif message["role"] == "tool":
            latest.setdefault(message["tool_call_id"], message["content"])
    return results


def _calling(function: FunctionCall, text: Content | None, *, in_chatglm3: bool) -> CallingMessage:
    content = _chatglm3_code(**function) if in_chatglm3 else text
    return {"role": "assistant", "content": content, "function_call": function}


def _chatglm3_code(name: str, arguments: str) -> str:
    """Return the call as the model itself wrote it; its server splits it at the first newline."""
    try:
        values = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        values = {"arguments": arguments}
    if not isinstance(values, dict):
        values = {"arguments": values}
    keywords = ", ".join(f"{key}={value!r}" for key, value in values.items())
    return f"{name}\n ```python\ntool_call({keywords})\n```"


def _chatglm3_function(tool: ToolSpec) -> ChatGLM3Function:
    required = tool.parameters.get("required", ())
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    params: list[Param] = [
        {
            "name": name,
            "description": _description(schema),
            "type": _type_name(schema),
            "required": name in required,
        }
        for name, schema in properties.items()
    ]
    return {"name": tool.name, "description": tool.description, "params": params}


def _description(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, Mapping) else ""


def _type_name(schema: Any) -> str:
    """Return one word for a JSON Schema: the first of its types that is not null, or "string"."""
    return next((kind for kind in _type_names(schema) if kind != "null"), "string")


def _type_names(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    kinds = schema.get("type", ())
    yield from (kinds,) if isinstance(kinds, str) else kinds
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _type_names(inner)


def as_json(fields: Mapping[str, Any]) -> bytes:
    """Return a request's body. Halves of characters, which JSON may not hold, become `?`."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a lone surrogate, or a type only the standard library knows
        return json.dumps(fields, ensure_ascii=False, default=str).encode("utf-8", "replace")
