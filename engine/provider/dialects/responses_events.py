"""Read what OpenAI's Responses API answers as chunks in the form of chat completions.

https://platform.openai.com/docs/api-reference/responses-streaming. Pure: no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.provider.dialects.event_reader import EventReader, Json, call_piece, chunk, thought

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
