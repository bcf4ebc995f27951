"""Read what OpenAI's Responses API answers as chunks in the form of chat completions.

https://platform.openai.com/docs/api-reference/responses-streaming. Pure: no I/O. Events and items
that are not known are passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.provider.dialects.placed_blocks import BlockPlaces
from engine.provider.faults import fault

Json = dict[str, Any]

_FINISH_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_REASONING_NAMES: Final = ("type", "id", "summary", "content", "encrypted_content")


class ResponsesReader:
    """Reads the events of one answer, or a whole answer of a server that does not stream."""

    def __init__(self) -> None:
        self._places = BlockPlaces()
        self._with_arguments: set[Any] = set()

    def read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the chunks that the event is, often none. Raises ProviderError."""
        try:
            yield from self._read(event)
        except (KeyError, TypeError, AttributeError):
            raise fault("provider_malformed") from None

    def _read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        if event.get("object") == "response":
            yield from self._whole(event)
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                yield self._say(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield _thought(event["delta"])
            case "response.reasoning_summary_part.added" if event["summary_index"]:
                yield _thought("\n\n")
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                yield self._begin_call(event["output_index"], event["item"])
            case "response.function_call_arguments.delta":
                self._with_arguments.add(event["output_index"])
                yield _call_piece(event["output_index"], arguments=event["delta"])
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
                    yield _thought("\n\n".join(thoughts))
                case "function_call":
                    yield self._begin_call(index, item)
            yield from self._finish(index, item)
        yield _end(response)

    def _begin_call(self, index: Any, item: Mapping[str, Any]) -> Json:
        self._places.count_call()
        return _call_piece(index, id=item["call_id"], name=item["name"])

    def _finish(self, index: Any, item: Mapping[str, Any]) -> Iterator[Json]:
        """Yield what an item holds that its pieces did not."""
        match item["type"]:
            case "function_call" if index not in self._with_arguments:
                yield _call_piece(index, arguments=item["arguments"])
            case "reasoning" if item.get("encrypted_content"):
                kept = {name: item[name] for name in _REASONING_NAMES if item.get(name) is not None}
                yield _chunk(self._places.field(kept))

    def _say(self, text: str) -> Json:
        self._places.count_text(text)
        return _chunk({"content": text})


def _end(response: Mapping[str, Any]) -> Json:
    if response["status"] == "failed":
        return {"error": response.get("error") or {"code": "server_error"}}
    reason = "stop"
    if response["status"] == "incomplete":
        given = (response.get("incomplete_details") or {}).get("reason")
        reason = _FINISH_REASONS.get(str(given), "length")
    chunk: Json = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if usage := response.get("usage"):
        chunk["usage"] = {
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        }
    return chunk


def _thought(text: str) -> Json:
    """Return a part of the content, so that it is shown and not kept: blocks keep it."""
    return _chunk({"content": [{"type": "thinking", "thinking": text}]})


def _chunk(delta: Json) -> Json:
    return {"choices": [{"index": 0, "delta": delta}]}


def _call_piece(index: Any, id: str = "", **function: str) -> Json:
    return _chunk({"tool_calls": [{"index": index, "id": id, "function": function}]})
