"""End the work on a document without new chunks: give it back, put it off, fail or cancel it.

Each is one UPDATE with the fence in its condition: what another worker holds by now stays as it is.
What was searchable before stays searchable in all of them.
"""

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from amber.lib.database.lease import NO_WORKER
from libraries.failure_mails import tell_of_document
from libraries.models import Document, DocumentQuerySet, DocumentStatus

WORKER_LOST: Final = (
    "Indexing was interrupted too often because its workers stopped. Retry the document."
)
INTERNAL: Final = "An internal error occurred with this document. The worker's log has the details."

QUEUED_ANEW: Final[dict[str, Any]] = {
    **NO_WORKER,
    "status": DocumentStatus.QUEUED,
    "ended_at": None,
    "attempt": 0,
    "error": "",
    "not_before": None,
    "cancel_requested_at": None,
    "started_at": None,
}
"""The columns of a document that somebody asked to index again: earlier attempts do not count."""


def make_ready_again(document: Document) -> None:
    """Make the document ready again with the chunks it has."""
    Document.objects.end(document, DocumentStatus.READY, error="")


def release(document: Document) -> None:
    """Queue the document for another worker to go on with; the attempt does not count."""
    Document.objects.release(document)


def put_off(document: Document, *, seconds: float, why: str) -> None:
    """Let the document wait for `seconds`, and say why; the attempt does not count."""
    # Of the claim's copy: what the stages stored since (`Work.progress`) has no `waits`.
    waits = int(document.progress.get("waits", 0)) + 1
    Document.objects.release(
        document,
        error=why,
        progress=document.progress | {"waits": waits},
        not_before=Now() + timedelta(seconds=seconds),
    )


def fail(document: Document, why: str) -> None:
    """Fail the document, which keeps its stage: a retry goes on from there. `why` is for people, of
    whom the one who added it is mailed."""
    with transaction.atomic():
        if Document.objects.end(document, DocumentStatus.FAILED, error=why):
            tell_of_document(document, why)


def cancel(document: Document) -> None:
    Document.objects.end(document, DocumentStatus.CANCELLED, error="")


def stop_documents(documents: DocumentQuerySet) -> None:
    """Let those of the documents that are being ingested stop at their next step.

    In the caller's transaction, before it locks their library. Two queries.
    """
    running = documents.filter(status=DocumentStatus.RUNNING)
    running.lock_in_order()
    running.update(cancel_requested_at=Now())


def end_lost(document: Document) -> None:
    """Queue a document again whose worker or child was lost.

    It ends if it was cancelled, or has cost too many workers.
    """
    if document.cancel_requested_at is not None:
        cancel(document)
    elif document.is_last_attempt:
        fail(document, WORKER_LOST)
    else:
        Document.objects.give_back(document)
