"""Delete a document from its library: the row, its chunks and bytes, and its share of the count."""

from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from libraries.ingestion import intake
from libraries.models import Document, DocumentChunk, Library


@transaction.atomic
def remove_document(document_id: UUID, *, library_id: UUID) -> None:
    """Delete a document with its chunks and bytes; nothing happens if it is gone already.

    A worker that has it finds it gone and writes nothing. Locks come in the one order of
    `libraries.ingestion.publication`: the chunks, the document, its library.
    """
    chunks = DocumentChunk.objects.filter(document=document_id)
    # A worker that replaces them has deleted these, and still wants the document and the library.
    # Not those of a dropped model: `libraries.ingestion.leftovers` locks the library before them.
    in_use = Q(embedding_model=F("library__embedding_model"))
    in_use |= Q(embedding_model=F("library__next_embedding_model"))
    list(chunks.filter(in_use).select_for_update(of=("self",)).values_list("pk"))
    held = Document.objects.select_for_update().filter(pk=document_id)
    file_id = held.values_list("file_id", flat=True).first()
    library = Library.objects.select_for_update(no_key=True).get(pk=library_id)
    removed, _ = chunks.filter(embedding_model_id=library.embedding_model_id).delete()
    chunks.delete()
    Document.objects.filter(pk=document_id).delete()
    intake.remove_document_files([file_id])
    library.chunk_count = max(0, library.chunk_count - removed)
    library.save(update_fields=["chunk_count"])
