"""Read functions and calls as clients of ChatGLM3's own server write them.

    functions   {"weather": {"name": "weather", "description": "…", "params": [
                    {"name": "city", "type": "str", "description": "…", "required": true}]}}
    a call      text of the assistant's message, which its streaming client sends back without the call

Pure. Form: https://github.com/THUDM/ChatGLM3 (`openai_api_demo`, `tools_using_demo`). What is malformed is
passed on as it is, for whoever reads it then to refuse.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from engine.tool_calls import FunctionCall, ToolCall

_TYPES: Final[Mapping[str, str]] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "dict": "object",
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object")},
}
"""Python's names, which its tools are registered with, and JSON Schema's own."""

_GENERIC = re.compile(r"\A(?:typing\.)?(\w+)(?:\[(.*)\])?\Z", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_LITERAL = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|-?\d{1,18}(?:\.\d{1,18})?|True|False|None"
_KEYWORD = re.compile(rf"\s*(\w+)\s*=\s*({_LITERAL})\s*(?:,|\Z)")


def as_list(functions: Any) -> Any:
    """Return the functions of a dict by name as OpenAI's list; leave a list untouched."""
    if not isinstance(functions, dict):
        return functions
    return [
        {"name": name, **function} if isinstance(function, dict) else function
        for name, function in functions.items()
    ]


def schema_of(params: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of parameters; whatever else is said of one stays in it."""
    properties = {param["name"]: _property_of(param) for param in params}
    required = [param["name"] for param in params if param.get("required")]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _property_of(param: Mapping[str, Any]) -> dict[str, Any]:
    said = {
        k: v for k, v in param.items() if k not in ("name", "type", "required") and v is not None
    }
    return {**_type_of(str(param.get("type") or "")), **said}


def _type_of(written: str) -> dict[str, Any]:
    """Return the type that is meant; nothing for one that JSON Schema does not have."""
    found = _GENERIC.match(written.strip())
    if found is None:
        return {}
    name, inner = found.group(1).lower(), found.group(2)
    if name == "optional" and inner:
        return _type_of(inner)
    kind = _TYPES.get(name)
    if kind == "array" and inner and "," not in inner and (items := _type_of(inner)):
        return {"type": kind, "items": items}
    return {"type": kind} if kind else {}


def write_call(call: ToolCall) -> str:
    """Return a call as text, which its client puts into the history instead of the call."""
    return f"{call.name}\n ```python\ntool_call(**{call.arguments})\n```"


def read_call(text: Any, name: str) -> tuple[str, FunctionCall]:
    """Return what the assistant said before its call of this function, and the call.

    Without a call in the text there are no arguments to be had.
    """
    found = _split_call(text) if isinstance(text, str) else None
    if found is None or found[1] != name:
        return text if isinstance(text, str) else "", {"name": name, "arguments": "{}"}
    said, _, given = found
    return said.strip(), {"name": name, "arguments": orjson.dumps(_arguments(given)).decode()}


def _split_call(text: str) -> tuple[str, str, str] | None:
    """Return what stands before a call, the function's name, and what is between its parentheses.

    The text ends with a line that is the name, and a fence around `tool_call(…)`.
    """
    body = text.rstrip().removesuffix("```").rstrip()
    before, opened, given = body.rpartition("tool_call(")
    before = before.rstrip().removesuffix("python").rstrip()
    line = before.removesuffix("```").rstrip()
    name = _NAME.search(line[-64:])
    if not (text.rstrip().endswith("```") and opened and given.endswith(")") and name):
        return None
    if not before.endswith("```") or "\n" not in before[len(line) :]:
        return None
    return line[: len(line) - len(name.group())], name.group(), given[:-1].strip()


def _arguments(written: str) -> Any:
    """Return the arguments between the parentheses; under one name what cannot be read."""
    if written.startswith("**"):
        try:
            given = orjson.loads(written[2:])
        except orjson.JSONDecodeError:
            given = None
        return given if isinstance(given, dict) else {"arguments": written}
    values: dict[str, Any] = {}
    at = 0
    while at < len(written):
        found = _KEYWORD.match(written, at)
        if found is None:
            return {"arguments": written}
        values[found.group(1)] = ast.literal_eval(found.group(2))
        at = found.end()
    return values
