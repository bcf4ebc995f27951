"""Add, change, retry, cancel and delete documents, at any stage of their ingestion.

Nothing here waits for a parser, a provider or a worker: such work is left to the queue.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from accounts.models import IdempotencyRecord
from accounts.tenancy.idempotency import settle
from amber.lib.database.rows import save_changes
from amber.lib.errors import Conflict, blame_field
from libraries.files.url_fetching import fetch_url
from libraries.ingestion import intake
from libraries.ingestion.document_deletion import remove_document
from libraries.ingestion.endings import QUEUED_ANEW
from libraries.ingestion.intake import DocumentSource, IntakeResult, PlacedDocument
from libraries.models import Document, DocumentStatus, Library
from libraries.queue import enqueue_ingestion
from libraries.wire import document_wire


def add_document(
    library: Library, given: DocumentSource, *, claim: IdempotencyRecord | None = None
) -> PlacedDocument:
    """Add a document as `intake.put` does, and settle the idempotency claim with it.

    Raises TooLarge, Invalid, Unavailable.
    """
    return intake.put(library, given, also=partial(settle_and_enqueue, claim))


def status_of(placed: PlacedDocument) -> int:
    """Return 201 for a new document, and 200 for one that was there, whatever its content."""
    return 201 if placed.outcome is IntakeResult.NEW else 200


@transaction.atomic(durable=True)
def update_document(document: Document, *, changes: Mapping[str, Any]) -> Document:
    """Change a document's name and metadata; nothing is indexed anew."""
    save_changes(document, changes)
    return document


@transaction.atomic(durable=True)
def retry_document(document: Document) -> Document:
    """Queue a document again, to go on from its last finished stage.

    One that is running or ready stays as it is.
    """
    waiting = Document.objects.filter(
        pk=document.pk,
        status__in=[DocumentStatus.FAILED, DocumentStatus.CANCELLED, DocumentStatus.QUEUED],
    )
    waiting.update(**QUEUED_ANEW, updated_at=Now())
    transaction.on_commit(enqueue_ingestion)
    return _reload(document)


@transaction.atomic(durable=True)
def cancel_document(document: Document) -> Document:
    """Cancel a document: one that waits ends now, one that is running stops at its next step.

    What was searchable before stays searchable. A document that has ended stays as it is.
    """
    mine = Document.objects.filter(pk=document.pk)
    waiting = mine.filter(status=DocumentStatus.QUEUED)
    ended = {"status": DocumentStatus.CANCELLED, "error": "", "not_before": None}
    if not waiting.update(**ended, ended_at=Now(), updated_at=Now()):
        running = mine.filter(status=DocumentStatus.RUNNING, cancel_requested_at=None)
        running.update(cancel_requested_at=Now(), updated_at=Now())
    return _reload(document)


@transaction.atomic(durable=True)
def delete_document(document: Document) -> None:
    """Delete the row, its chunks and its bytes. A worker that has it writes nothing more."""
    remove_document(document.pk, library_id=document.library_id)


def settle_and_enqueue(claim: IdempotencyRecord | None, placed: PlacedDocument) -> None:
    """Settle the idempotency claim, and enqueue ingestion when the transaction commits."""
    settle(claim, status=status_of(placed), answer=document_wire(placed.document))
    transaction.on_commit(enqueue_ingestion)


def _reload(document: Document) -> Document:
    deferred = document.get_deferred_fields()
    fields = [f.attname for f in document._meta.concrete_fields if f.attname not in deferred]
    document.refresh_from_db(fields=fields)
    return document


OF_REPOSITORY: Final = "This document comes from a Git repository. Import the repository again."
NOT_FETCHED: Final = "This document was not fetched from an address. Upload it again instead."


def add_from_url(
    library: Library,
    *,
    url: str,
    user_id: UUID | None,
    name: str = "",
    path: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    claim: IdempotencyRecord | None = None,
) -> PlacedDocument:
    """Fetch an address and add its answer as a document.

    Raises UnsafeAddress, FetchError, TooLarge, Invalid (all name `url`), Unavailable.
    """
    with blame_field("url"):
        fetched = fetch_url(url)
        given = DocumentSource(
            name=name or fetched.name,
            data=fetched.data,
            path=path,
            source=url,
            mime_type=fetched.mime_type,
            metadata=metadata,
            user_id=user_id,
        )
        intake.check(given)
    into = _find_earlier(library, url) if path is None else None
    return intake.put(library, given, into=into, also=partial(settle_and_enqueue, claim))


def refresh_document(document: Document) -> PlacedDocument:
    """Fetch a document again. Raises Conflict if it has no address, else as `add_from_url`."""
    if document.repository_id is not None or not document.source:
        raise Conflict(OF_REPOSITORY if document.repository_id else NOT_FETCHED)
    fetched = fetch_url(document.source)
    given = DocumentSource(
        name=document.name,
        data=fetched.data,
        path=document.path,
        source=document.source,
        mime_type=fetched.mime_type,
        user_id=document.user_id,
    )
    return intake.put(document.library, given, into=document.pk, also=_enqueue)


def _find_earlier(library: Library, url: str) -> UUID | None:
    """Return the id of the document that was added from this address before, or None."""
    rows = Document.objects.filter(library=library, source=url, path=None, repository=None)
    found: UUID | None = rows.order_by("created_at").values_list("pk", flat=True).first()
    return found


def _enqueue(_: PlacedDocument) -> None:
    transaction.on_commit(enqueue_ingestion)
