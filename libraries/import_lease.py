"""Keeps the lease of one repository while it is imported: fetching may take minutes.

A thread of its own renews it, since the thread that imports waits for a server meanwhile. Where the
row is no longer ours, or its library was deleted, the next check raises Fenced.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from amber.lib.connections import release_connections
from amber.lib.lease import Fenced
from libraries.models import Library, Repository

logger = structlog.get_logger(__name__)


@contextmanager
def kept(repository: Repository) -> Iterator[Callable[[], None]]:
    """Renew until the block ends. What it gives raises Fenced once the row was lost."""
    is_over, is_lost = threading.Event(), threading.Event()

    def check() -> None:
        if is_lost.is_set():
            raise Fenced

    renewing = threading.Thread(
        target=_renew_until, args=(repository, is_over, is_lost), name="import-lease", daemon=True
    )
    renewing.start()
    try:
        yield check
    finally:
        is_over.set()
        renewing.join()


def _renew_until(
    repository: Repository, is_over: threading.Event, is_lost: threading.Event
) -> None:
    while not is_over.wait(settings.AMBER_SWEEP_SECONDS):
        try:
            if not _renewed(repository):
                is_lost.set()
                return
        except (DatabaseError, InterfaceError) as exc:
            logger.warning("lease_not_renewed", reason=type(exc).__name__)
        finally:
            release_connections()


def _renewed(repository: Repository) -> bool:
    if Library.objects.filter(pk=repository.library_id, deleted_at__isnull=False).exists():
        return False
    renewed: int = Repository.objects.filter(fence=repository.fence).renew(
        [repository.pk], worker=repository.worker, lease_seconds=settings.AMBER_LEASE_SECONDS
    )
    return renewed > 0
