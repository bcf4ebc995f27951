"""Take claimed documents through the stages: parse them, chunk them, embed and publish them.

    stored -> parsed -> chunked -> embedded -> ready

Each is committed under the fence, so a killed worker's documents go on from the last one that was:
the text is not parsed again, and vectors that were paid for are in the cache
(`libraries.embedding.store`). Cutting a text up is pure, so pieces are not stored on the way; the
rows of chunks appear at once, in the last transaction (`libraries.ingestion.publication`).

Ends documents that cannot be read or must stop. Faults of a provider are left to the caller.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Final
from uuid import UUID

from amber.lib.database.connections import release_connections
from amber.lib.errors import Unavailable
from amber.lib.workers.leases import RunStoppedError, StopReason
from engine.provider.model import ProviderError
from libraries.chunking.chunker import Chunk, chunk
from libraries.embedding.store import embed_texts
from libraries.files.storage import seekable_bytes
from libraries.ingestion import endings, progress, publication, switching
from libraries.ingestion.claims import Batch, running_documents
from libraries.ingestion.publication import (
    DocumentLockedError,
    DocumentsLostError,
    ModelsChangedError,
)
from libraries.ingestion.work import VectorSpool, Work
from libraries.models import Document, DocumentStage
from libraries.parsing import ParserLost, Unreadable, parse
from providers.models import EmbeddingModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_CHUNKS: Final = 512
"""Chunks embedded between two checks for cancellation: four of a provider's usual batches."""
FILE_GONE: Final = "The file this document was made from is gone. Upload it again."
AWAY: Final = "Files cannot be read at the moment. Amber will try again automatically."
AWAY_SECONDS: Final = 60.0
LOCKED: Final = "Another worker still holds this document. Amber will try again automatically."
LOCKED_SECONDS: Final = 30.0
NO_TEXT: Final = "This document contains no text."


class ModelFault(Exception):
    """The provider of this embedding model failed."""

    def __init__(self, model: EmbeddingModel, error: ProviderError) -> None:
        super().__init__(error.message)
        self.model = model
        self.error = error


def run_stages(batch: Batch) -> None:
    """Take the batch through all stages. Documents that end on the way leave `batch.documents`.

    Raises ModelFault, DecryptError: those left are as they were after their last stage.
    """
    if not batch.models:  # a change of model was called off meanwhile
        for document in batch.documents:
            endings.make_ready_again(document)
        return
    _BatchRun(batch).drive()


class _BatchRun:
    """Takes one batch through the stages. `_works` are the documents that still go on."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._works = [Work.begin(document) for document in batch.documents]

    def drive(self) -> None:
        self._run_stage(DocumentStage.PARSED, self._read)
        self._run_stage(DocumentStage.CHUNKED, self._cut)
        # The spools hold the vectors of all of these in order, also of those that stop on the way.
        everyone = list(self._works)
        with contextlib.ExitStack() as spools:
            vectors = {m.pk: self._embed(everyone, m, spools) for m in self._batch.models}
            self._end_stopped()
            self._advance(DocumentStage.EMBEDDED)
            self._publish(everyone, vectors)
        if self._batch.library.next_embedding_model_id is not None:
            switching.finish_switch(self._batch.library.pk)

    # -- One document after the other ----------------------------------------------------------

    def _run_stage(self, stage: DocumentStage, step: Callable[[Work], None]) -> None:
        """Take the step with every document, end those that cannot go on, store the new stage."""
        for work in list(self._works):
            try:
                running_documents.check(work.document)
                step(work)
            except RunStoppedError as stopped:
                self._stop(work, stopped.reason)
            except Unreadable as unreadable:
                endings.fail(work.document, str(unreadable))
                self._forget(work)
            except ParserLost:
                endings.end_lost(work.document)
                self._forget(work)
            except Unavailable:
                endings.put_off(work.document, seconds=AWAY_SECONDS, why=AWAY)
                self._forget(work)
        self._advance(stage)

    def _read(self, work: Work) -> None:
        """Get the text, of an earlier attempt or parsed now.

        Raises Unreadable, ParserLost, and Unavailable if the storage of files cannot be reached.
        """
        document = work.document
        if work.has_reached(DocumentStage.PARSED):
            document.refresh_from_db(fields=["text", "pages"])
            work.text, work.pages = document.text or "", tuple(document.pages)
            work.mime_type = document.mime_type
            return
        release_connections()
        with _bytes_of(document) as data, work.time_stage(DocumentStage.PARSED):
            said = document.file.mime_type if document.file else ""
            parsed = parse(data, name=document.path or document.name, mime_type=said)
        work.text, work.pages, work.mime_type = parsed.text, parsed.pages, parsed.mime_type

    def _cut(self, work: Work) -> None:
        """Chunk the text. Raises Unreadable if there is none."""
        library = self._batch.library
        with work.time_stage(DocumentStage.CHUNKED):
            work.chunks = chunk(
                work.text,
                size_tokens=library.chunk_tokens,
                overlap_tokens=library.overlap_tokens,
                pages=work.pages,
                mime_type=work.mime_type,
            )
        if not work.chunks:
            raise Unreadable(NO_TEXT)

    # -- All together ----------------------------------------------------------------------------

    def _embed(
        self, works: list[Work], model: EmbeddingModel, spools: contextlib.ExitStack
    ) -> VectorSpool:
        """Embed all their chunks, in order; fewer once all are stopped. Raises ModelFault."""
        began = time.monotonic()
        spool = spools.enter_context(contextlib.closing(VectorSpool(model.dimensions)))
        pieces = [(work, piece) for work in works for piece in work.chunks]
        for work in works:
            work.embedded = 0  # with two models the second counts anew
        for start in range(0, len(pieces), WINDOW_CHUNKS):
            self._end_stopped()
            if not self._works:
                break
            window = pieces[start : start + WINDOW_CHUNKS]
            spool.add(self._vectors(model, window))
            for work, _ in window:
                work.embedded += 1
            if len(pieces) > WINDOW_CHUNKS:
                progress.store_progress(self._works)
        for work in self._works:
            work.timings[DocumentStage.EMBEDDED] = round((time.monotonic() - began) * 1_000)
        return spool

    def _vectors(
        self, model: EmbeddingModel, window: Sequence[tuple[Work, Chunk]]
    ) -> "NDArray[np.float32]":
        texts = [work.text[piece.start : piece.end] for work, piece in window]
        users = {work.document.user_id for work, _ in window}
        release_connections()
        try:
            return embed_texts(
                texts,
                model=model,
                organization_id=self._batch.library.organization_id,
                user_id=users.pop() if len(users) == 1 else None,
            )
        except ProviderError as error:
            raise ModelFault(model, error) from error

    def _publish(self, everyone: list[Work], vectors: dict[UUID, VectorSpool]) -> None:
        """Publish, again and again without those that were stopped or lost, until it succeeds."""
        while self._works:
            ids = {work.document.pk for work in self._works}
            try:
                publication.publish(self._batch.library, everyone, ids, vectors)
                return
            except DocumentsLostError as lost:
                for work in [w for w in self._works if w.document.pk in lost.document_ids]:
                    reason = running_documents.stop_reason(work.document)
                    self._stop(work, reason or StopReason.CANCELLED)
            except ModelsChangedError:
                for document in self._batch.documents:
                    endings.release(document)
                return
            except DocumentLockedError:
                for document in self._batch.documents:
                    endings.put_off(document, seconds=LOCKED_SECONDS, why=LOCKED)
                return

    # -- How far they are ------------------------------------------------------------------------

    def _advance(self, stage: DocumentStage) -> None:
        """Store the new stage. Cancelled documents end here; another worker keeps what it has."""
        behind = [work for work in self._works if not work.has_reached(stage)]
        if not behind:
            return
        if stage == DocumentStage.PARSED:
            still = progress.store_parsed(behind)
        else:
            still = progress.store_progress(behind, stage)
        for work in behind:
            work.stage = stage
            if work.document.pk not in still:
                self._stop(work, StopReason.CANCELLED)

    def _end_stopped(self) -> None:
        for work in list(self._works):
            try:
                running_documents.check(work.document)
            except RunStoppedError as stopped:
                self._stop(work, stopped.reason)

    def _stop(self, work: Work, reason: StopReason) -> None:
        """End the work on a document. Each of these checks the fence, so that a document which
        another worker has by now stays as it is.
        """
        if reason is StopReason.RELEASED:
            endings.release(work.document)
        elif reason is StopReason.CANCELLED:
            endings.cancel(work.document)
        self._forget(work)

    def _forget(self, work: Work) -> None:
        self._works.remove(work)
        self._batch.documents.remove(work.document)


@contextlib.contextmanager
def _bytes_of(document: Document) -> Iterator[IO[bytes]]:
    """Open the document's bytes. Raises Unreadable if they are gone, Unavailable."""
    if document.file is None:
        raise Unreadable(FILE_GONE)
    with contextlib.ExitStack() as opened:
        try:
            stored = opened.enter_context(seekable_bytes(document.file.path))
        except FileNotFoundError:
            raise Unreadable(FILE_GONE) from None
        yield stored
