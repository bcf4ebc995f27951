"""Answer with one JSON document of any length, written while it is read from the database.

    return json_response({"memories": in_batches(rows, wire)}, filename="memories.json")
    return json_lines_response(events, filename="events.jsonl")

A list in the document may be an iterator: it is read a batch at a time, by whichever thread is
free, and between two pieces no database connection is held. A slow reader costs the memory of one
batch. A fault in the middle breaks the answer off: an incomplete document is not valid JSON either.
Lines are a document each.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

import orjson
from django.db import connections
from django.db.models import Model, QuerySet
from django.http import StreamingHttpResponse

from amber.lib.database.connections import release_connections
from amber.lib.json_text import numbers

PIECE_BYTES: Final = 65_536
BATCH: Final = 200

AnyRow = TypeVar("AnyRow", bound=Model)


def json_response(document: Mapping[str, Any], *, filename: str) -> StreamingHttpResponse:
    """Return the document as a download.

    Call it in the request's own thread: it gives that thread's database connections back.
    """
    return _download(json_pieces(document), filename, "application/json")


def json_lines_response(
    documents: Iterator[Mapping[str, Any]], *, filename: str
) -> StreamingHttpResponse:
    """Return the documents as a download, a line each. Call it as `json_response`."""
    return _download(_gather(_lines(documents)), filename, "application/x-ndjson")


def _download(pieces: Iterator[bytes], filename: str, content_type: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_body(pieces), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    release_connections()
    return response


def in_batches(
    rows: QuerySet[AnyRow], wire: Callable[[AnyRow], Any], *, size: int = BATCH
) -> Iterator[Any]:
    """Yield `wire` of each row, oldest first: one query for their ids, and one per batch."""
    ids = iter(list(rows.order_by("created_at", "pk").values_list("pk", flat=True)))
    while some := list(islice(ids, size)):
        found = rows.in_bulk(some)
        yield from (wire(found[pk]) for pk in some if pk in found)


def json_pieces(value: Any) -> Iterator[bytes]:
    """Yield the document in pieces of about PIECE_BYTES."""
    yield from _gather(_write_value(value))


def _gather(parts: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


async def _body(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(_next, pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    """Return the next piece, empty at the end, and close this thread's connections."""
    try:
        return next(pieces, b"")
    finally:
        connections.close_all()


def _lines(documents: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    for document in documents:
        yield from _write_value(document)
        yield b"\n"


def _write_value(value: Any) -> Iterator[bytes]:
    if isinstance(value, Iterator):
        yield from _list(value)
    elif isinstance(value, Mapping) and any(isinstance(v, Iterator) for v in value.values()):
        yield from _object(value)
    else:
        yield numbers.write(value, option=orjson.OPT_UTC_Z)


def _list(items: Iterator[Any]) -> Iterator[bytes]:
    yield b"["
    for number, item in enumerate(items):
        yield b"," if number else b""
        yield from _write_value(item)
    yield b"]"


def _object(fields: Mapping[str, Any]) -> Iterator[bytes]:
    yield b"{"
    for number, (name, value) in enumerate(fields.items()):
        yield (b"," if number else b"") + orjson.dumps(name) + b":"
        yield from _write_value(value)
    yield b"}"
