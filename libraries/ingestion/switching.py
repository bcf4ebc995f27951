"""Switch the embedding model of a library, while search goes on with the old one.

While `next_embedding_model` is set, the library's documents are embedded for it by the ordinary
queue. When no document waits any more and none that can be found would be lost, one transaction
makes it the current one; the old chunks are garbage then (`libraries.ingestion.leftovers`).
"""

from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from amber.lib.database.lease import QUEUED, RUNNING
from libraries.ingestion.endings import QUEUED_ANEW
from libraries.models import Document, DocumentChunk, DocumentStage, DocumentStatus, Library
from providers.models import EmbeddingModel

logger = structlog.get_logger(__name__)


def begin_switch(library: Library, model: EmbeddingModel) -> None:
    """Queue ready documents for the new model. `library` is locked by the caller's transaction."""
    library.next_embedding_model = model
    library.save(update_fields=["next_embedding_model", "updated_at"])
    ready = Document.objects.filter(library=library, status=DocumentStatus.READY)
    ready.update(**QUEUED_ANEW, updated_at=Now())


def call_off_switch(library: Library) -> None:
    """Stay with the current model. `library` is locked by the caller's transaction."""
    library.next_embedding_model = None
    library.save(update_fields=["next_embedding_model", "updated_at"])
    # Running ones, too: their workers find that they run no more, and write nothing.
    waiting = Document.objects.filter(library=library, stage=DocumentStage.READY)
    waiting.exclude(status=DocumentStatus.READY).update(
        **QUEUED_ANEW | {"status": DocumentStatus.READY, "ended_at": Now(), "updated_at": Now()}
    )


@transaction.atomic
def finish_switch(library_id: UUID) -> bool:
    """Make the next model the current one if every document that can be found has its vectors.

    Returns whether it did.
    """
    rows = Library.objects.filter(pk=library_id, deleted_at=None).select_for_update(no_key=True)
    library = rows.filter(next_embedding_model__isnull=False).first()
    if library is None or _is_unfinished(library):
        return False
    chunks = DocumentChunk.objects.filter(
        library=library, embedding_model_id=library.next_embedding_model_id
    )
    Library.objects.filter(pk=library.pk).update(
        embedding_model_id=library.next_embedding_model_id,
        next_embedding_model=None,
        chunk_count=chunks.count(),
        updated_at=Now(),
    )
    logger.info("embedding_model_switched", library_id=str(library_id))
    return True


def finish_switches() -> None:
    """Finish switches whose worker died after the last document; called by the sweep."""
    rows = Library.objects.filter(next_embedding_model__isnull=False, deleted_at=None)
    for library_id in rows.values_list("pk", flat=True):
        finish_switch(library_id)


def _is_unfinished(library: Library) -> bool:
    """Return whether a document still waits, or failed for the new model and would be lost.

    The latter can be found by the old model only, so it holds up the whole switch.
    """
    documents = Document.objects.filter(library=library)
    if documents.filter(status__in=[QUEUED, RUNNING]).exists():
        return True
    found = DocumentChunk.objects.filter(
        document=OuterRef("pk"), embedding_model_id=library.embedding_model_id
    )
    ended = documents.filter(status__in=[DocumentStatus.FAILED, DocumentStatus.CANCELLED])
    return bool(ended.filter(Exists(found)).exists())
