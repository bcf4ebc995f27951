"""Record which documents this process is working on, and which of them must stop.

A thread of the worker renews all their leases in one statement and learns from it what was
cancelled or lost (`keep`); the thread that works on a document looks here between two steps.
Nothing here works on documents.
"""

import enum
import threading
from collections.abc import Iterable
from uuid import UUID

from django.conf import settings

from libraries.models import Document, DocumentStatus


class HoldEnd(enum.Enum):
    """The reason why a running document is stopped from outside."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    FENCED = "fenced"


class Stopped(Exception):
    """The work on a document goes no further; raised between two steps."""

    def __init__(self, reason: HoldEnd) -> None:
        super().__init__(reason.value)
        self.reason = reason


_lock = threading.Lock()
_held: dict[UUID, HoldEnd | None] = {}


def hold(document_ids: Iterable[UUID]) -> None:
    """Record that this process works on these documents, so that their leases are renewed."""
    with _lock:
        _held.update(dict.fromkeys(document_ids))


def drop(document_ids: Iterable[UUID]) -> None:
    """Stop renewing the leases of these documents."""
    with _lock:
        for pk in document_ids:
            _held.pop(pk, None)


def held_ids() -> list[UUID]:
    with _lock:
        return list(_held)


def stop(document_id: UUID, reason: HoldEnd) -> None:
    """Ask for the end of a document's work; nothing happens if this process does not have it."""
    with _lock:
        if document_id in _held and _held[document_id] is None:
            _held[document_id] = reason


def stop_all(reason: HoldEnd) -> None:
    for pk in held_ids():
        stop(pk, reason)


def is_stopped(document_id: UUID) -> bool:
    with _lock:
        return _held.get(document_id) is not None


def check(document_id: UUID) -> None:
    """Raise Stopped if the document must stop."""
    with _lock:
        reason = _held.get(document_id)
    if reason is not None:
        raise Stopped(reason)


def keep(worker: str) -> None:
    """Renew this process's leases and stop what was cancelled or lost; two statements at most."""
    mine = held_ids()
    if not mine:
        return
    Document.objects.renew(mine, worker=worker, lease_seconds=settings.AMBER_LEASE_SECONDS)
    running = Document.objects.filter(pk__in=mine, worker=worker, status=DocumentStatus.RUNNING)
    still = dict(running.values_list("pk", "cancel_requested_at"))
    for pk in mine:
        if pk not in still:
            stop(pk, HoldEnd.FENCED)
        elif still[pk] is not None:
            stop(pk, HoldEnd.CANCELLED)
