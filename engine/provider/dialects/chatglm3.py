"""Write requests for ChatGLM3's own server, and hold back text of its replies that turns out to be a call.

It takes one call at a time, and parameters as a list. A call is written as

    get_weather
     ```python
    tool_call(city='Ulm')
    ```

and the server streams this as content before it sends the call itself. Pure.
https://github.com/THUDM/ChatGLM3 (`openai_api_demo`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NotRequired, TypedDict

import orjson

from engine.messages import Content
from engine.provider.dialects.dialect import Dialect
from engine.provider.dialects.functions import CallingMessage, SentMessage, one_call_at_a_time
from engine.provider.model import ModelRequest
from engine.tool_calls import FunctionCall
from engine.tools import ToolSpec

_SPLIT: Final = "<|assistant|>"
"""What ChatGLM3 writes between a text and a call."""

_LINE_END = re.compile(r"\n|(?=<)")
_CODE_MARKS: Final = ("```", "tool_call(")


class HiddenCalls:
    """Passes on the text of one reply as it comes, but for lines that may begin a call.

    A line that is a tool's name is kept until the next one shows whether it is one: a call is then
    kept to the end.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._held = ""
        self._is_call = False
        self._is_at_line = True

    def feed(self, text: str) -> str:
        """Return what may be shown now."""
        self._held += text
        if self._is_call:
            return ""
        shown = self._held
        for start in self._line_starts():
            begins_call = self._judge(self._held[start:])
            if begins_call is not False:
                self._is_call = begins_call is True
                shown = self._held[:start]
                break
        self._held = self._held[len(shown) :]
        if shown:
            self._is_at_line = shown.endswith("\n")
        return shown

    def end(self, *, called: bool) -> str:
        """Return the rest: what looked like a call is text, if none came."""
        rest, self._held = self._held, ""
        return "" if called else rest

    def _line_starts(self) -> list[int]:
        starts = [found.end() for found in _LINE_END.finditer(self._held)]
        return [0, *starts] if self._is_at_line else starts

    def _judge(self, text: str) -> bool | None:
        """Return whether a call begins with this text; None as long as that is open."""
        if _SPLIT.startswith(text):
            return None
        line, is_whole, rest = text.removeprefix(_SPLIT).lstrip().partition("\n")
        word = line.strip()
        if not is_whole:
            return None if any(name.startswith(word) for name in self._names) else False
        if word not in self._names:
            return False
        rest = rest.lstrip(" \t")
        if rest.startswith(_CODE_MARKS):
            return True
        return None if any(mark.startswith(rest) for mark in _CODE_MARKS) else False


class Param(TypedDict):
    name: str
    description: str
    type: str
    required: bool


class ChatGLM3Function(TypedDict):
    name: str
    description: str
    params: list[Param]


class ChatGLM3Request(TypedDict):
    messages: list[SentMessage]
    functions: NotRequired[dict[str, ChatGLM3Function]]


def request_fields(request: ModelRequest) -> ChatGLM3Request:
    fields: ChatGLM3Request = {"messages": list(one_call_at_a_time(request.messages, _write_call))}
    if request.tools:
        fields["functions"] = {tool.name: _function_of(tool) for tool in request.tools}
    return fields


def _write_call(function: FunctionCall, text: Content | None) -> Iterator[CallingMessage]:
    """Yield the text on its own: the server reads the content of a call as code."""
    if text:
        yield {"role": "assistant", "content": text}
    yield {"role": "assistant", "content": code_of(**function), "function_call": function}


def code_of(name: str, arguments: str) -> str:
    """Return the call as the model itself wrote it; its server splits it at the first newline."""
    try:
        values = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        values = {"arguments": arguments}
    if not isinstance(values, dict):
        values = {"arguments": values}
    keywords = ", ".join(f"{key}={value!r}" for key, value in values.items())
    return f"{name}\n ```python\ntool_call({keywords})\n```"


def _function_of(tool: ToolSpec) -> ChatGLM3Function:
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


def _hide_calls(request: ModelRequest) -> HiddenCalls | None:
    """Return what keeps calls out of the text: the server streams them as text first."""
    return HiddenCalls(tool.name for tool in request.tools) if request.tools else None


DIALECT: Final = Dialect(request_fields, new_filter=_hide_calls)
