"""Write requests for OpenAI's Responses API, stateless: the provider stores nothing.

https://platform.openai.com/docs/api-reference/responses/create and …/docs/guides/reasoning. Pure:
no I/O. Reasoning items come and go back encrypted; without `store` their ids mean nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.messages import Content, ProviderMessage
from engine.provider.dialects.dialect import Dialect, plain_schema
from engine.provider.dialects.placed_blocks import in_order
from engine.provider.dialects.responses_events import ResponsesReader
from engine.provider.model import ModelProfile, ModelRequest
from engine.tool_calls import ChatToolCall
from engine.tools import ToolChoice, ToolSpec

Json = dict[str, Any]

MIN_OUTPUT_TOKENS: Final = 16
"""The API refuses a lower limit."""

_IN_OTHER_WORDS: Final = frozenset(
    {
        *("stop", "seed", "presence_penalty", "frequency_penalty", "stream_options"),
        *("max_tokens", "max_completion_tokens", "response_format", "reasoning_effort"),
        "verbosity",
    }
)
"""Names of parameters of chat completions that this API calls by others, or does not have."""


def request_fields(request: ModelRequest) -> Json:
    fields: Json = {"input": list(_items(request.messages))}
    if request.tools:
        fields["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            fields["tool_choice"] = _choice(request.tool_choice)
    return fields


def _tool(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": plain_schema(tool),
        "strict": bool(tool.strict),  # left out it would mean true
    }


def _choice(choice: ToolChoice) -> str | Json:
    if isinstance(choice, str):
        return choice
    return {"type": "function", "name": choice["function"]["name"]}


def _items(messages: Sequence[ProviderMessage]) -> Iterator[Json]:
    for message in messages:
        match message["role"]:
            case "assistant":
                for kind, item in in_order(message):
                    if kind == "call":
                        yield _call_item(item)
                    elif kind == "block":
                        yield dict(item)
                    elif item:
                        yield {"role": "assistant", "content": item}
            case "tool":
                result = {"call_id": message["tool_call_id"], "output": message["content"]}
                yield {"type": "function_call_output", **result}
            case "system":
                yield {"role": "system", "content": message["content"]}
            case "user":
                yield {"role": "user", "content": _content(message["content"])}


def _call_item(call: ChatToolCall) -> Json:
    return {"type": "function_call", "call_id": call["id"], **call["function"]}


def _content(content: Content) -> str | list[Json]:
    if isinstance(content, str):
        return content
    return [
        {"type": "input_text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
        for part in content
    ]


def parameters(asked: Mapping[str, Any], request: ModelRequest, profile: ModelProfile) -> Json:
    """Return what else is asked for in this API's words, which has none for stop words, seeds and
    penalties."""
    others = {name: value for name, value in asked.items() if name not in _IN_OTHER_WORDS}
    fields: Json = {"store": False, "include": ["reasoning.encrypted_content"]} | others
    if asked.get("reasoning_effort") is not None:
        fields["reasoning"] = {"effort": asked["reasoning_effort"]} | fields.get("reasoning", {})
    text = {"verbosity": asked.get("verbosity"), "format": _format(asked.get("response_format"))}
    if text := {name: value for name, value in text.items() if value is not None}:
        fields["text"] = text | fields.get("text", {})
    if limit := asked.get("max_completion_tokens") or asked.get("max_tokens"):
        fields["max_output_tokens"] = max(limit, MIN_OUTPUT_TOKENS)
    return fields


def _format(wanted: Mapping[str, Any] | None) -> Json | None:
    """Return a `response_format` in one level."""
    if not wanted:
        return None
    return {"type": wanted["type"], **(wanted.get("json_schema") or {})}


DIALECT: Final = Dialect(
    request_fields,
    allows_parallel_calls=True,
    path="/responses",
    parameters=parameters,
    new_reader=ResponsesReader,
)
