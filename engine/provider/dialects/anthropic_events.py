"""Read what Anthropic's Messages API answers as chunks in OpenAI's form.

https://docs.anthropic.com/en/docs/build-with-claude/streaming. Pure: no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from engine.provider.dialects.event_reader import EventReader, Json, call_piece, chunk, thought


class AnthropicReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self._usage: Json = {}
        self._blocks: dict[Any, Json] = {}

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
                yield thought(block["thinking"])
            case "tool_use":
                yield self._begin_call(index, block["id"], block["name"])

    def _continue(self, index: Any, delta: Mapping[str, Any]) -> Iterator[Json]:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                yield self._say(delta["text"])
            case "input_json_delta" if block["type"] == "tool_use":
                block["input"] = None  # it comes in pieces
                yield call_piece(index, arguments=delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
                yield thought(delta["thinking"])
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]

    def _stop(self, index: Any) -> Iterator[Json]:
        block = self._blocks.pop(index)
        match block["type"]:
            case "thinking" | "redacted_thinking":
                yield self._keep(block)
            case "tool_use" if block.get("input"):
                yield call_piece(index, arguments=orjson.dumps(block["input"]).decode())

    def _end(self, reason: Any) -> Json:
        return chunk({}, finish_reason=reason) | {"usage": self._usage_form()}

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
