"""How the work on a document ends without making it ready: given back, put off, failed, cancelled.

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

WORKER_LOST: Final = "The workers that read this document stopped too often. Try it again."
INTERNAL: Final = "Amber failed with this document. The log of the worker has the details."

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
"""The same of one that somebody asked for: nothing is held against it."""


def stand(document: Document) -> None:
    """Ready, with the chunks it has."""
    _update(document, **_ended_columns(DocumentStatus.READY), error="")


def give_back(documents: Iterable[Document]) -> None:
    """Another worker goes on where this one was; the attempt does not count."""
    for document in documents:
        _update(document, **WAITING, attempt=_uncount_attempt())


def put_off(document: Document, *, seconds: float, why: str) -> None:
    """It waits, says why, and is taken again after `seconds`; the attempt does not count."""
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
    """`why` is for people. It stays at its stage: a retry goes on from there."""
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
    """Its worker's lease has run out: again, unless it was cancelled or has cost too many workers.

    `document` is locked and as it is now.
    """
    if document.cancel_requested_at is not None:
        cancel(document)
    elif document.attempt >= most_attempts:
        fail(document, WORKER_LOST)
    else:
        _update(document, **WAITING)
