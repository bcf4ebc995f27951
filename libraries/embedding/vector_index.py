"""Keep one HNSW index for each embedding model that has many chunks.

    ((vector::halfvec(D)) halfvec_cosine_ops) WHERE embedding_model_id = '…'

`tend_indexes` is a periodic job: it builds what is missing, drops what a killed build left behind
(an INVALID index costs writes and serves nobody) and what no chunk uses any more. Until there is
an index, search compares exactly. Indexes are built CONCURRENTLY, so nobody waits. An advisory
lock keeps two workers from tending at once; a second connection holds it in an idle transaction. Both
connections go past PgBouncer, where they can: a build needs a session with more memory, and may last longer
than PgBouncer lets a transaction be idle.

Refuses models of more than MAX_DIMENSIONS. https://github.com/pgvector/pgvector#hnsw
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from amber.lib.database.connections import keeps_session, past_pooler
from libraries.models import DocumentChunk
from providers.models import EmbeddingModel

logger = structlog.get_logger(__name__)

MAX_DIMENSIONS: Final = 4_000
"""The most that an HNSW index over halfvec takes."""

WORTH_AN_INDEX: Final = 10_000
"""Chunks of a model. Below that hardly any library is large enough for search to use it."""

_PREFIX: Final = "chunk_hnsw_"
_LOCK: Final = 0x616D_6265_7201
"""Key of the advisory lock: any number nobody else uses."""

BUILD_MEMORY: Final = "256MB"
"""`maintenance_work_mem`: 200,000 vectors of 512 halves. Beyond it the build goes on, slower."""


def index_name(model_id: UUID) -> str:
    return f"{_PREFIX}{model_id.hex}"


def rows_indexed(model: EmbeddingModel) -> int:
    """Estimate how many chunks the model's index holds; 0 if there is no usable one."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS_SQL, [index_name(model.pk)])
        found: tuple[float] | None = cursor.fetchone()
    # `reltuples` is -1 as long as nobody has counted.
    return int(max(0.0, found[0])) if found else 0


def tend_indexes() -> None:
    """Build and drop indexes as needed. Returns at once if another worker is at it."""
    with past_pooler(), _try_lock() as is_sole:
        if not is_sole:
            return
        for name, is_valid in _list_indexes():
            if not is_valid:
                logger.warning("index_left_unfinished", index=name)
                _drop_index(name)
        models = {index_name(model.pk): model for model in EmbeddingModel.objects.all()}
        existing = {name for name, _ in _list_indexes()}
        for name in existing:
            if name not in models or not _has_chunks(models[name]):
                _drop_index(name)
        for name in models.keys() - existing:
            if models[name].dimensions <= MAX_DIMENSIONS and _is_worth_it(models[name]):
                _build_index(models[name])


def _has_chunks(model: EmbeddingModel) -> bool:
    return DocumentChunk.objects.filter(embedding_model=model).exists()


def _is_worth_it(model: EmbeddingModel) -> bool:
    """Return whether the model has chunks enough, counting no further than needed."""
    rows = DocumentChunk.objects.filter(embedding_model=model)
    return rows[:WORTH_AN_INDEX].count() == WORTH_AN_INDEX


def _build_index(model: EmbeddingModel) -> None:
    logger.info("index_build_started", model=model.alias)
    # Such a statement takes no parameters; both values are a row's own number and UUID.
    with _much_memory(), connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {index_name(model.pk)}"
            " ON libraries_documentchunk"
            f" USING hnsw ((vector::halfvec({int(model.dimensions)})) halfvec_cosine_ops)"
            f" WHERE embedding_model_id = '{model.pk}'"
        )
    logger.info("index_built", model=model.alias)


@contextmanager
def _much_memory() -> Iterator[None]:
    """Give the session BUILD_MEMORY inside of the block, unless PgBouncer lends it to others meanwhile."""
    if not keeps_session():
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", [BUILD_MEMORY])
        try:
            yield
        finally:
            cursor.execute("RESET maintenance_work_mem")


def _drop_index(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")


def _list_indexes() -> list[tuple[str, bool]]:
    """Return (name, is usable) of all indexes that this module made."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES_SQL, [_PREFIX + "%"])
        return list(cursor.fetchall())


@contextmanager
def _try_lock() -> Iterator[bool]:
    """Take the advisory lock, and tell whether this caller got it.

    The idle transaction holds no snapshot, so that the build, which waits for older snapshots, does
    not wait for this one.
    """
    guard: Any = connection.copy()
    try:
        guard.set_autocommit(False)
        with guard.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
            (is_sole,) = cursor.fetchone()
            # The last statement keeps its snapshot until the next one; this has none.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield is_sole
    finally:
        guard.rollback()
        guard.close()


_INDEXES_SQL: Final = """
SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = 'libraries_documentchunk'::regclass AND relname LIKE %s
"""

_ROWS_SQL: Final = """
SELECT reltuples FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indexrelid = to_regclass(%s) AND indisvalid
"""
