"""Ask a tool's service what it offers, from a plain thread, and make the answer fit for storage.

Everything that can go wrong is an AmberError for the person who added the tool. An answer that is
too large is refused. No database connection is held while the service is asked.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from amber.lib.database.connections import release_connections
from amber.lib.egress import FetchError
from amber.lib.egress.policy import UnsafeAddress, origin_of
from amber.lib.errors import AmberError
from amber.lib.json_text import numbers
from tools.connections.sources import source_of
from tools.source import Connection, DiscoveryError, DiscoveryResult

DISCOVERY_SECONDS: Final = 45.0
"""For the whole discovery; one request has 30."""

MAX_DATA_BYTES: Final = 4_000_000
"""The data is read with every turn of every assistant that uses the tool."""

MAX_WARNINGS: Final = 100
MAX_TEXT_CHARS: Final = 4_000

# Of `\\u0000` the first is a backslash by itself: a NUL has an even number of them before its own.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


@dataclass(frozen=True, slots=True)
class InspectionRequest:
    """A service to ask, and its kind."""

    kind: str
    connection: Connection


def discover(question: InspectionRequest) -> DiscoveryResult:
    """Ask one service and block. Raises DiscoveryError, UnsafeAddress, Invalid."""
    found = discover_all([question])[0]
    if isinstance(found, AmberError):
        raise found
    return found


def discover_all(questions: Sequence[InspectionRequest]) -> list[DiscoveryResult | AmberError]:
    """Ask all at once and return their answers in order. Blocks for DISCOVERY_SECONDS at most."""
    release_connections()
    return asyncio.run(_ask_all(questions))


def key_origin(question: InspectionRequest, data: Mapping[str, Any]) -> tuple[str, str, int] | None:
    """Return the origin that the key goes to with this data; None if it is not known."""
    try:
        return origin_of(source_of(question.kind).key_url(question.connection, data))
    except UnsafeAddress:
        return None


async def _ask_all(questions: Sequence[InspectionRequest]) -> list[DiscoveryResult | AmberError]:
    return list(await asyncio.gather(*map(_ask_one, questions)))


async def _ask_one(question: InspectionRequest) -> DiscoveryResult | AmberError:
    connection = question.connection
    try:
        async with asyncio.timeout(DISCOVERY_SECONDS):
            return _make_storable(await source_of(question.kind).discover(connection))
    except TimeoutError:
        return _blame_field(DiscoveryError("The address did not answer in time."), connection)
    except FetchError as error:
        return _blame_field(DiscoveryError(error.message), connection)
    except AmberError as error:
        return _blame_field(error, connection)


def _blame_field(error: AmberError, connection: Connection) -> AmberError:
    """Put an error without fields down to the address, or to the pasted document."""
    field = "discovery_url" if connection.url else "document"
    error.fields = error.fields or {field: [error.message]}
    return error


def _make_storable(found: DiscoveryResult) -> DiscoveryResult:
    """Remove what Postgres refuses. Raises DiscoveryError."""
    try:
        written = numbers.write(found.data)
    except TypeError:
        raise DiscoveryError("The service's description of itself is not JSON.") from None
    if len(written) > MAX_DATA_BYTES:
        raise DiscoveryError(f"The service describes itself in more than {MAX_DATA_BYTES:,} bytes.")
    return replace(
        found,
        name=_text(found.name),
        description=_text(found.description),
        data=orjson.loads(_NUL.sub(rb"\1", written)),
        warnings=[_text(each) for each in found.warnings[:MAX_WARNINGS]],
    )


def _text(text: str) -> str:
    return text.replace("\0", "")[:MAX_TEXT_CHARS]
