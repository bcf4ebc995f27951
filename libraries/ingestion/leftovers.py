"""Delete what nobody can see any more: deleted libraries and imports, chunks of dropped models.

Each batch is a transaction of its own, so no lock is held for long and a killed worker's work is
not lost. Called again for what is left; two at once do no harm.
"""

from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from amber.lib.database.batches import delete_batch
from libraries.embedding.store import forget_texts
from libraries.ingestion import intake
from libraries.ingestion.document_deletion import remove_document
from libraries.models import Document, DocumentChunk, Library, Repository

CHUNKS_AT_ONCE: Final = 5_000
DOCUMENTS_AT_ONCE: Final = 500
FORGOTTEN_AT_ONCE: Final = 1_000
"""Chunks of one batch whose texts are read to find their vectors in the cache."""


def erase_leftovers() -> None:
    """Delete the rows of deleted libraries and imports, and chunks of models no longer used."""
    for library in Library.objects.filter(deleted_at__isnull=False):
        _erase_library(library)
    for repository in Repository.objects.filter(deleted_at__isnull=False):
        _erase_import(repository)
    for library_id, model_id in _dropped_models():
        while _erase_dropped(library_id, model_id):
            pass


def _erase_library(library: Library) -> None:
    """Delete the chunks, the documents with their bytes, then the library itself.

    What refers to the library stays, without it.
    """
    # None comes meanwhile: whoever publishes chunks locks the library, and finds it deleted.
    while _erase_with_vectors(library):
        pass
    while _erase_documents(library.pk):
        pass
    with transaction.atomic():
        Library.objects.filter(pk=library.pk).delete()


def _erase_import(repository: Repository) -> None:
    """Delete the import's documents one by one, as people do, then the import itself."""
    documents = Document.objects.filter(repository=repository)
    while ids := list(documents.values_list("pk", flat=True)[:DOCUMENTS_AT_ONCE]):
        for pk in ids:
            remove_document(pk, library_id=repository.library_id)
    with transaction.atomic():
        Repository.objects.filter(pk=repository.pk).delete()


@transaction.atomic
def _erase_with_vectors(library: Library) -> int:
    """Delete a batch of chunks with their cached vectors: nothing of a deleted library stays."""
    chunks = DocumentChunk.objects.filter(library=library)
    found = dict(chunks.values_list("pk", "content")[:FORGOTTEN_AT_ONCE])
    forget_texts(found.values(), organization_id=library.organization_id)
    return int(DocumentChunk.objects.filter(pk__in=found).delete()[0])


@transaction.atomic
def _erase_dropped(library_id: UUID, model_id: UUID) -> int:
    """Delete a batch of a dropped model's chunks.

    Under the library's lock, since the library may switch back to the model meanwhile.
    """
    wanted = Q(embedding_model=model_id) | Q(next_embedding_model=model_id)
    rows = Library.objects.select_for_update(no_key=True).filter(pk=library_id)
    if rows.exclude(wanted).first() is None:
        return 0
    chunks = DocumentChunk.objects.filter(library=library_id, embedding_model=model_id)
    return delete_batch(chunks, at_most=CHUNKS_AT_ONCE)


@transaction.atomic
def _erase_documents(library_id: UUID) -> int:
    rows = Document.objects.filter(library=library_id).order_by("pk").select_for_update()
    found = dict(rows.values_list("pk", "file_id")[:DOCUMENTS_AT_ONCE])
    Document.objects.filter(pk__in=found).delete()
    intake.remove_document_files(list(found.values()))
    return len(found)


# Two index probes for each pair of a library and a model it does not use.
_DROPPED_SQL: Final = """
SELECT l.id, m.id FROM libraries_library l CROSS JOIN providers_embeddingmodel m
WHERE m.id <> l.embedding_model_id AND m.id IS DISTINCT FROM l.next_embedding_model_id
  AND EXISTS (SELECT 1 FROM libraries_documentchunk c
              WHERE c.library_id = l.id AND c.embedding_model_id = m.id)
"""


def _dropped_models() -> list[tuple[UUID, UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(_DROPPED_SQL)
        return list(cursor.fetchall())
