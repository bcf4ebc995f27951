"""Write requests for OpenAI's Responses API, and read its answers as chunks of chat completions.

https://platform.openai.com/docs/api-reference/responses/create, …/responses-streaming and
…/docs/guides/reasoning. Pure: no I/O. Requests are stateless: the provider stores nothing. Reasoning
items come and go back encrypted; without `store` their ids mean nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.messages import Content, ProviderMessage
from engine.provider.dialects.dialect import Dialect, plain_schema
from engine.provider.dialects.event_reader import EventReader, call_piece, chunk, thought
from engine.provider.dialects.placed_blocks import in_order
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


_FINISH_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_REASONING_NAMES: Final = ("type", "id", "summary", "content", "encrypted_content")


class ResponsesReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self._with_arguments: set[Any] = set()

    def _read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        if event.get("object") == "response":
            yield from self._whole(event)
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                yield self._say(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield thought(event["delta"])
            case "response.reasoning_summary_part.added" if event["summary_index"]:
                yield thought("\n\n")
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                item = event["item"]
                yield self._begin_call(event["output_index"], item["call_id"], item["name"])
            case "response.function_call_arguments.delta":
                self._with_arguments.add(event["output_index"])
                yield call_piece(event["output_index"], arguments=event["delta"])
            case "response.output_item.done":
                yield from self._finish(event["output_index"], event["item"])
            case "response.completed" | "response.incomplete" | "response.failed":
                yield _end(event["response"])
            case "error":
                yield {"error": event}

    def _whole(self, response: Mapping[str, Any]) -> Iterator[Json]:
        for index, item in enumerate(response["output"]):
            match item["type"]:
                case "message":
                    for part in item["content"]:
                        yield self._say(part.get("text") or part.get("refusal") or "")
                case "reasoning":
                    thoughts = [part["text"] for part in item.get("summary") or ()]
                    yield thought("\n\n".join(thoughts))
                case "function_call":
                    yield self._begin_call(index, item["call_id"], item["name"])
            yield from self._finish(index, item)
        yield _end(response)

    def _finish(self, index: Any, item: Mapping[str, Any]) -> Iterator[Json]:
        """Yield what an item holds that its pieces did not."""
        match item["type"]:
            case "function_call" if index not in self._with_arguments:
                yield call_piece(index, arguments=item["arguments"])
            case "reasoning" if item.get("encrypted_content"):
                kept = {name: item[name] for name in _REASONING_NAMES if item.get(name) is not None}
                yield self._keep(kept)


def _end(response: Mapping[str, Any]) -> Json:
    if response["status"] == "failed":
        return {"error": response.get("error") or {"code": "server_error"}}
    reason = "stop"
    if response["status"] == "incomplete":
        given = (response.get("incomplete_details") or {}).get("reason")
        reason = _FINISH_REASONS.get(str(given), "length")
    end = chunk({}, finish_reason=reason)
    if usage := response.get("usage"):
        end["usage"] = {
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        }
    return end


DIALECT: Final = Dialect(
    request_fields,
    allows_parallel_calls=True,
    path="/responses",
    parameters=parameters,
    new_reader=ResponsesReader,
)
