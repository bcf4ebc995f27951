"""Read what Anthropic's Messages API answers as chunks in OpenAI's form.

https://docs.anthropic.com/en/docs/build-with-claude/streaming. Pure: no I/O. Events and blocks that
are not known are passed over, as the API asks its clients to.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from engine.provider.dialects.placed_blocks import BlockPlaces
from engine.provider.faults import fault

Json = dict[str, Any]


class AnthropicReader:
    """Reads the events of one answer, or a whole answer of a server that does not stream."""

    def __init__(self) -> None:
        self._usage: Json = {}
        self._blocks: dict[Any, Json] = {}
        self._places = BlockPlaces()

    def read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the chunks that the event is, often none. Raises ProviderError."""
        try:
            yield from self._read(event)
        except (KeyError, TypeError, AttributeError):
            raise fault("provider_malformed") from None

    def _read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        match event.get("type"):
            case "message_start":
                self._usage = dict(event["message"].get("usage") or {})
            case "content_block_start":
                yield from self._start(event["index"], dict(event["content_block"]))
            case "content_block_delta":
                yield from self._continue(event["index"], event["delta"])
            case "content_block_stop":
                yield from self._stop(event["index"])
            case "message_delta":
                self._usage |= event.get("usage") or {}
                yield self._end(event["delta"].get("stop_reason"))
            case "message":
                self._usage = dict(event.get("usage") or {})
                for index, block in enumerate(event["content"]):
                    yield from self._start(index, dict(block))
                    yield from self._stop(index)
                yield self._end(event.get("stop_reason"))

    def _start(self, index: Any, block: Json) -> Iterator[Json]:
        self._blocks[index] = block
        match block["type"]:
            case "text":
                yield self._say(block["text"])
            case "thinking" if block.get("thinking"):
                yield _thought(block["thinking"])
            case "tool_use":
                self._places.count_call()
                yield _call_piece(index, id=block["id"], name=block["name"])

    def _continue(self, index: Any, delta: Mapping[str, Any]) -> Iterator[Json]:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                yield self._say(delta["text"])
            case "input_json_delta" if block["type"] == "tool_use":
                block["input"] = None  # it comes in pieces
                yield _call_piece(index, arguments=delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
                yield _thought(delta["thinking"])
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]

    def _stop(self, index: Any) -> Iterator[Json]:
        block = self._blocks.pop(index)
        match block["type"]:
            case "thinking" | "redacted_thinking":
                yield _chunk(self._places.field(block))
            case "tool_use" if block.get("input"):
                yield _call_piece(index, arguments=orjson.dumps(block["input"]).decode())

    def _say(self, text: str) -> Json:
        self._places.count_text(text)
        return _chunk({"content": text})

    def _end(self, reason: Any) -> Json:
        choice = {"index": 0, "delta": {}, "finish_reason": reason}
        return {"choices": [choice], "usage": self._usage_form()}

    def _usage_form(self) -> Json | None:
        """Return the usage in OpenAI's form, which counts what the cache had among the prompt."""
        if "input_tokens" not in self._usage:
            return None
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        prompt, read, written = (self._usage.get(name) or 0 for name in names)
        return {
            "prompt_tokens": prompt + read + written,
            "completion_tokens": self._usage.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": read},
        }


def _thought(text: str) -> Json:
    """Return a part of the content, so that it is shown and not kept: blocks keep it."""
    return _chunk({"content": [{"type": "thinking", "thinking": text}]})


def _chunk(delta: Json) -> Json:
    return {"choices": [{"index": 0, "delta": delta}]}


def _call_piece(index: Any, id: str = "", **function: str) -> Json:
    return _chunk({"tool_calls": [{"index": index, "id": id, "function": function}]})
