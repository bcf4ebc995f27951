"""Keep the lease of one repository while it is imported: fetching may take minutes.

A thread of its own renews it, since the thread that imports waits for a server meanwhile. When the
row was lost to another worker, or its library was deleted, the next check raises Fenced.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings

from amber.lib.database.lease import Fenced
from amber.lib.workers.renewal import renewing
from libraries.models import Library, Repository


@contextmanager
def keep_lease(repository: Repository) -> Iterator[Callable[[], None]]:
    """Renew the lease until the block ends; yields a check that raises Fenced once it was lost."""
    is_lost = threading.Event()

    def renew() -> None:
        if not is_lost.is_set() and not _renew_lease(repository):
            is_lost.set()

    def check() -> None:
        if is_lost.is_set():
            raise Fenced

    with renewing(renew):
        yield check


def _renew_lease(repository: Repository) -> bool:
    if Library.objects.filter(pk=repository.library_id, deleted_at__isnull=False).exists():
        return False
    renewed: int = Repository.objects.filter(fence=repository.fence).renew(
        [repository.pk], worker=repository.worker, lease_seconds=settings.AMBER_LEASE_SECONDS
    )
    return renewed > 0
