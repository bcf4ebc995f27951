"""Measure ingestion: documents a second, against bare COPY, and memory.

Documents of 4 KB of words are uploaded over REST. The rows of some of them are then deleted and
copied in again by one bare COPY into the same table with all its indexes.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp
import psutil
import psycopg
from psycopg import sql

from bench.report import Finding
from bench.rest import call, signed_in
from bench.stand import RunningAmber, Stand

DOCUMENT_CHARS = 4_096
UPLOADS_AT_ONCE = 4
WARM_DOCUMENTS = 50
"""After so many the worker has loaded what it needs: vocabularies, numpy, parsers' children."""
MORE_DOCUMENTS = 2_200
"""Before COPY is compared: a model gets its index when it has 10,000 chunks, and into an index that
is nearly empty rows go faster than they ever will."""
LOOK_SECONDS = 0.05

Database = psycopg.Connection[tuple[Any, ...]]
_numbers = count()


@dataclass(slots=True)
class Watched:
    """What was observed during a run."""

    seconds: float = 0.0
    resident_mib: list[float] = field(default_factory=list)
    """Of the ingest worker, one a look; the last when all were ready."""
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    """By role, the databases as one."""


def ingestion(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    documents, times = (100, 1) if is_quick else (950, 3)
    with stand.amber(provider_url) as amber, psycopg.connect(stand.database_url()) as database:
        database.autocommit = True
        warm = asyncio.run(_upload_and_watch(amber, database, WARM_DOCUMENTS))
        _index(database)  # not before there are chunks: an index without any is dropped
        watched = asyncio.run(_upload_and_watch(amber, database, documents))
        if not is_quick:
            asyncio.run(_upload_and_watch(amber, database, MORE_DOCUMENTS))
        rounds = [_against_copy(amber, database, documents // 2) for _ in range(times)]
    return [
        Finding(
            "documents of 4 KB a second, first upload to last found",
            documents / watched.seconds,
            "/s",
            at_least=55,
            note="CPU ms a document: "
            + ", ".join(
                f"{role} {seconds / documents * 1_000:.1f}"
                for role, seconds in watched.cpu_seconds.items()
            ),
        ),
        Finding(
            "ingested chunks/s against bare COPY of the same rows",
            statistics.median(ingested.rate / copied.rate for ingested, copied in rounds),
            "x",
            at_least=0.8,
            note="; ".join(f"{a.rate:.0f} against {b.rate:.0f}" for a, b in rounds)
            + "; CPU ms a chunk: "
            + "; ".join(f"{a.cpu_ms:.2f} against {b.cpu_ms:.2f}" for a, b in rounds),
        ),
        Finding(
            f"ingest worker, peak of {documents} documents over memory after {WARM_DOCUMENTS}",
            max(watched.resident_mib) - warm.resident_mib[-1],
            "MiB",
            at_most=100,
            note=f"{warm.resident_mib[-1]:.0f} MiB, then up to {max(watched.resident_mib):.0f}",
        ),
    ]


def _index(database: Database) -> None:
    """Build the index that a model gets once it has many chunks, before the run."""
    found = 'SELECT id, dimensions FROM providers_embeddingmodel WHERE "default"'
    [(model_id, dimensions)] = database.execute(found).fetchall()
    made = (
        f"CREATE INDEX IF NOT EXISTS chunk_hnsw_{model_id.hex} ON libraries_documentchunk"
        f" USING hnsw ((vector::halfvec({dimensions})) halfvec_cosine_ops)"
        f" WHERE embedding_model_id = '{model_id}'"
    )
    database.execute(made.encode())


# -- From REST to found ------------------------------------------------------------------------


async def _upload_and_watch(amber: RunningAmber, database: Database, documents: int) -> Watched:
    async with signed_in(amber) as session:
        library_id = await _new_library(session)
        watched, before, began = Watched(), _cpu_seconds(amber), time.monotonic()
        uploading = asyncio.create_task(_upload(session, library_id, documents))
        while _ready(database, library_id) < documents:
            watched.resident_mib.append(_resident_mib(amber))
            await asyncio.sleep(LOOK_SECONDS)
        watched.seconds = time.monotonic() - began
        await uploading
    used = _cpu_seconds(amber)
    watched.cpu_seconds = {role: used[role] - before[role] for role in used}
    watched.resident_mib.append(_resident_mib(amber))
    return watched


async def _new_library(session: aiohttp.ClientSession) -> str:
    return str((await call(session, "POST", "libraries/", {"name": "bench"}))["id"])


async def _upload(session: aiohttp.ClientSession, library_id: str, documents: int) -> None:
    places = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def give(body: dict[str, str]) -> None:
        async with places:
            await call(session, "POST", f"libraries/{library_id}/documents/", body)

    texts = [new_text() for _ in range(documents)]
    await asyncio.gather(*(give({"name": "bench.txt", "text": text}) for text in texts))


def new_text() -> str:
    """Return 4 KB of sentences; no two texts are the same."""
    chance = random.Random(next(_numbers))
    words = [f"{start}{end}" for start in _STARTS.split() for end in _ENDS]
    sentences: list[str] = []
    while sum(map(len, sentences)) < DOCUMENT_CHARS:
        chosen = chance.choices(words, k=chance.randint(6, 18))
        sentences.append(
            " ".join(chosen).capitalize() + (".\n\n" if chance.random() < 0.2 else ". ")
        )
    return "".join(sentences)[:DOCUMENT_CHARS]


_STARTS = "pump valve river stone light paper engine garden window iron"
_ENDS = ("", "s", "ing", "ed", "ly", "ness", "er", "house", "work", "side", "stream", "book")


def _ready(database: Database, library_id: str) -> int:
    counted = "SELECT count(*) FROM libraries_document WHERE library_id = %s AND status = 'ready'"
    [(ready,)] = database.execute(counted, [library_id]).fetchall()
    return int(ready)


def _cpu_seconds(amber: RunningAmber) -> dict[str, float]:
    return amber.cpu_seconds() | {"databases": amber.database_cpu_seconds()}


def _resident_mib(amber: RunningAmber) -> float:
    """Return the resident memory of the worker and the children that parse for it."""
    return sum(each.memory_info().rss for each in amber.processes()["ingest"]) / 2**20


# -- Against bare COPY -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """What writing chunks took; the CPU is that of the worker and the databases together."""

    chunks: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Chunks a second."""
        return self.chunks / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Of a chunk: what a busy machine changes least."""
        return self.cpu_seconds / self.chunks * 1_000


def _against_copy(
    amber: RunningAmber, database: Database, documents: int
) -> tuple[Written, Written]:
    """Write chunks twice: ingested from a full queue, and copied by one statement."""
    with _suspended(amber):
        library_id = asyncio.run(_filled_library(amber, documents))
        ingesting = _Meter(amber)
    while _ready(database, library_id) < documents:
        time.sleep(LOOK_SECONDS)
    ingested = ingesting.read()
    columns, rows = _copied_out(database, library_id)
    gone = database.execute(
        "DELETE FROM libraries_documentchunk WHERE library_id = %s", [library_id]
    )
    database.execute("VACUUM libraries_documentchunk")
    copying = _Meter(amber)
    _copy_in(database, columns, rows)
    return Written(gone.rowcount, *ingested), Written(gone.rowcount, *copying.read())


class _Meter:
    """Counts seconds, and those of CPU of the worker and the databases, from now on."""

    def __init__(self, amber: RunningAmber) -> None:
        self._amber = amber
        self._used_before, self._began = self._cpu_seconds(), time.monotonic()

    def read(self) -> tuple[float, float]:
        return time.monotonic() - self._began, self._cpu_seconds() - self._used_before

    def _cpu_seconds(self) -> float:
        used = _cpu_seconds(self._amber)
        return used["ingest"] + used["databases"]


@contextmanager
def _suspended(amber: RunningAmber) -> Iterator[None]:
    """Suspend the ingest worker, for less than its leases last; it holds none."""
    worker: psutil.Process = amber.processes()["ingest"][0]
    worker.suspend()
    try:
        yield
    finally:
        worker.resume()


async def _filled_library(amber: RunningAmber, documents: int) -> str:
    async with signed_in(amber) as session:
        library_id = await _new_library(session)
        await _upload(session, library_id, documents)
        return library_id


def _copied_out(database: Database, library_id: str) -> tuple[str, bytes]:
    """Return the stored columns and the library's rows of them."""
    stored = (
        "SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns"
        " WHERE table_name = 'libraries_documentchunk' AND is_generated = 'NEVER'"
    )
    [(columns,)] = database.execute(stored).fetchall()
    chosen = sql.SQL("SELECT {} FROM libraries_documentchunk WHERE library_id = {}").format(
        sql.SQL(columns), sql.Literal(library_id)
    )
    out = sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(chosen)
    with database.cursor() as cursor, cursor.copy(out) as copy:
        return columns, b"".join(bytes(piece) for piece in copy)


def _copy_in(database: Database, columns: str, rows: bytes) -> None:
    """Copy the rows in, and commit."""
    into = f"COPY libraries_documentchunk ({columns}) FROM STDIN (FORMAT binary)"
    with (
        database.transaction(),
        database.cursor() as cursor,
        cursor.copy(into.encode()) as copy,
    ):
        copy.write(rows)
