"""Chunks of a streamed reply as providers write them, and what is gathered of them."""

from typing import Any

import orjson

from engine.provider.chunks import ReplyGatherer


def chunk(finish_reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return orjson.dumps({"choices": [choice]})


def piece(**fields: Any) -> bytes:
    """A chunk with one piece of a tool call: index, id, and the rest as its function."""
    outer = {key: fields.pop(key) for key in ("index", "id") if key in fields}
    return chunk(tool_calls=[{**outer, "function": fields}])


def gathered(*payloads: bytes) -> ReplyGatherer:
    gatherer = ReplyGatherer()
    _, failure = gatherer.add_all(list(payloads))
    if failure is not None:
        raise failure
    return gatherer
