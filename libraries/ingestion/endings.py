"""End the work on a document without new chunks: give it back, put it off, fail or cancel it.

Each is one UPDATE with the fence in its condition: what another worker holds by now stays as it is.
What was searchable before stays searchable in all of them.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.db.models import F, Value
from django.db.models.functions import Greatest, Now

from amber.lib.database.lease import RUNNING
from libraries.models import Document, DocumentStatus

WORKER_LOST: Final = (
    "Indexing was interrupted too often because its workers stopped. Retry the document."
)
INTERNAL: Final = "An internal error occurred with this document. The worker's log has the details."

WAITING: Final[dict[str, Any]] = {
    "status": DocumentStatus.QUEUED,
    "worker": "",
    "lease_until": None,
    "ended_at": None,
}
"""The columns of a document that waits for a worker."""
AFRESH: Final[dict[str, Any]] = {
    **WAITING,
    "attempt": 0,
    "error": "",
    "not_before": None,
    "cancel_requested_at": None,
    "started_at": None,
}
"""The columns of a document that somebody asked to index again: earlier attempts do not count."""


def make_ready_again(document: Document) -> None:
    """Make the document ready again with the chunks it has."""
    _update(document, **_ended_columns(DocumentStatus.READY), error="")


def give_back(documents: Iterable[Document]) -> None:
    """Queue the documents for another worker to go on with; the attempt does not count."""
    for document in documents:
        _update(document, **WAITING, attempt=_uncount_attempt())


def put_off(document: Document, *, seconds: float, why: str) -> None:
    """Let the document wait for `seconds`, and say why; the attempt does not count."""
    waits = int(document.progress.get("waits", 0)) + 1
    _update(
        document,
        **WAITING,
        attempt=_uncount_attempt(),
        error=why,
        progress=document.progress | {"waits": waits},
        not_before=Now() + timedelta(seconds=seconds),
    )


def fail(document: Document, why: str) -> None:
    """Fail the document, which keeps its stage: a retry goes on from there. `why` is for people."""
    _update(document, **_ended_columns(DocumentStatus.FAILED), error=why)


def cancel(document: Document) -> None:
    _update(document, **_ended_columns(DocumentStatus.CANCELLED), error="")


def _ended_columns(status: DocumentStatus) -> dict[str, Any]:
    return {"status": status, "worker": "", "lease_until": None, "ended_at": Now()}


def _uncount_attempt() -> Any:
    return Greatest(F("attempt") - 1, Value(0))


def _update(document: Document, **changes: Any) -> None:
    held = Document.objects.filter(pk=document.pk, fence=document.fence, status=RUNNING)
    held.update(**changes, updated_at=Now())


def end_lost(document: Document, *, most_attempts: int) -> None:
    """Queue a document again whose worker's lease ran out.

    It ends if it was cancelled, or has cost too many workers. `document` is locked and current.
    """
    if document.cancel_requested_at is not None:
        cancel(document)
    elif document.attempt >= most_attempts:
        fail(document, WORKER_LOST)
    else:
        _update(document, **WAITING)
