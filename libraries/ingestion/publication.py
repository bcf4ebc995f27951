"""Make documents searchable in one transaction: all chunks with their vectors, or none of them.

Rows of chunks exist for what can be found and for nothing else, so search need not ask how far a
document is. Old chunks of a document go in the transaction that brings the new ones. The fence is
checked at the end, when all is written: a worker that lost its document leaves no trace, and
during the minutes that a very large document takes only its deletion has to wait.

Locks are taken in one order everywhere: old chunks, documents by id, then their library.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import F
from psycopg.errors import LockNotAvailable

from amber.lib.database.lease import RUNNING
from amber.lib.search.languages import add_up
from libraries.chunking.chunk_writer import ChunkRow, write_chunks
from libraries.chunking.chunker import Chunk
from libraries.ingestion.claims import models_wanted, running_documents
from libraries.ingestion.progress import make_ready
from libraries.ingestion.work import VectorSpool, Work
from libraries.models import Document, DocumentChunk, DocumentStage, Library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE_ROWS: Final = 256
"""Chunks of one COPY. Between two of them the documents are checked for cancellation."""

LOCK_TIMEOUT: Final = "20s"
"""Longer than any live worker holds the locks that this waits for."""


class ModelsChangedError(Exception):
    """The library changed its embedding model meanwhile: begin again, with the current models."""


class DocumentsLostError(Exception):
    """These documents were stopped or lost; the rest can be published without them."""

    def __init__(self, document_ids: set[UUID]) -> None:
        super().__init__(document_ids)
        self.document_ids = document_ids


class DocumentLockedError(Exception):
    """A worker that is paused, or on a machine that is gone, still holds a document's lock."""


def publish(
    library: Library, works: Sequence[Work], ids: set[UUID], vectors: Mapping[UUID, VectorSpool]
) -> None:
    """Make the documents of `ids` ready, with chunks for each model of `vectors`.

    A spool holds the vectors of all `works`, in order. Nothing is written when this raises
    DocumentsLostError, ModelsChangedError or DocumentLockedError.
    """
    try:
        _publish(library, works, ids, vectors)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise DocumentLockedError from error
        raise


@transaction.atomic(durable=True)
def _publish(
    library: Library, works: Sequence[Work], ids: set[UUID], vectors: Mapping[UUID, VectorSpool]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    began = time.monotonic()
    wanted = [work for work in works if work.document.pk in ids]
    removed = {model_id: _remove_old(ids, model_id) for model_id in vectors}
    # Documents and library are locked only after the chunks are written, which may take minutes.
    languages = {
        model_id: _copy_chunks(works, ids, model_id, spool) for model_id, spool in vectors.items()
    }
    _lock_documents(wanted)
    now = _lock_library(library, wanted, set(vectors))
    current: UUID = now.embedding_model_id
    for work in wanted:
        work.timings[DocumentStage.READY] = round((time.monotonic() - began) * 1_000)
    make_ready(wanted)
    # Chunks of the next model alone are counted when the library switches to it.
    if current in vectors:
        added = sum(len(work.chunks) for work in wanted)
        change = added - removed[current]
        Library.objects.filter(pk=library.pk).update(
            chunk_count=F("chunk_count") + change,
            languages=add_up([now.languages, languages[current]]),
        )


def _remove_old(ids: set[UUID], model_id: UUID) -> int:
    old = DocumentChunk.objects.filter(document__in=ids, embedding_model=model_id)
    return int(old.delete()[0])


def _copy_chunks(
    works: Sequence[Work], ids: set[UUID], model_id: UUID, spool: VectorSpool
) -> Counter[str]:
    """Write all chunks of one model, piece by piece; return how many are in each language.

    Raises DocumentsLostError.
    """
    languages: Counter[str] = Counter()
    spool.rewind()
    pieces = [(work, chunk) for work in works for chunk in work.chunks]
    for start in range(0, len(pieces), PIECE_ROWS):
        if start:
            _check_unlocked([work for work in works if work.document.pk in ids])
        piece = pieces[start : start + PIECE_ROWS]
        vectors = spool.take(len(piece))
        languages += write_chunks(
            _row(work, chunk, model_id, vector)
            for (work, chunk), vector in zip(piece, vectors, strict=True)
            if work.document.pk in ids
        )
    return languages


def _row(work: Work, chunk: Chunk, model_id: UUID, vector: "NDArray[np.float16]") -> ChunkRow:
    document = work.document
    return ChunkRow(
        organization_id=document.organization_id,
        document_id=document.pk,
        library_id=document.library_id,
        embedding_model_id=model_id,
        content=work.text[chunk.start : chunk.end],
        order=chunk.order,
        start=chunk.start,
        end=chunk.end,
        page=chunk.page,
        heading=chunk.heading,
        tokens=chunk.tokens,
        vector=vector,
        name=document.searched_name,
    )


def _check_unlocked(works: Sequence[Work]) -> None:
    """Look, without a lock, whether documents were stopped or lost. Raises DocumentsLostError."""
    running = Document.objects.filter(
        pk__in=[work.document.pk for work in works], status=RUNNING, cancel_requested_at=None
    )
    fences = dict(running.values_list("pk", "fence"))
    gone = {
        work.document.pk
        for work in works
        if fences.get(work.document.pk) != work.document.fence
        or running_documents.stop_reason(work.document)
    }
    if gone:
        raise DocumentsLostError(gone)


def _lock_documents(works: Sequence[Work]) -> None:
    """Lock the documents and check their fences. Raises DocumentsLostError.

    This is the fence: another worker that claimed one meanwhile has given it a new number.
    """
    fences = {work.document.pk: work.document.fence for work in works}
    rows = Document.objects.filter(pk__in=fences, status=RUNNING, cancel_requested_at=None)
    locked = rows.select_for_update(no_key=True).order_by("pk").values_list("pk", "fence")
    still = {pk for pk, fence in locked if fence == fences[pk]}
    if still != set(fences):
        raise DocumentsLostError(set(fences) - still)


def _lock_library(library: Library, works: Sequence[Work], given: set[UUID]) -> Library:
    """Lock the library and return it as it is now. Raises DocumentsLostError,
    ModelsChangedError."""
    rows = Library.objects.select_for_update(no_key=True, of=("self",))
    related = ("embedding_model", "next_embedding_model")
    found = rows.select_related(*related).filter(pk=library.pk, deleted_at=None)
    now: Library | None = found.first()
    if now is None:
        raise DocumentsLostError({work.document.pk for work in works})
    for work in works:
        if {model.pk for model in models_wanted(now, work.stage)} != given:
            raise ModelsChangedError
    return now
