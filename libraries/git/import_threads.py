"""Run the Git imports of this worker process, each in a thread of its own, few at once.

A thread that dies with its process leaves a row whose lease runs out.
"""

import threading
from collections.abc import Callable
from typing import Final

from amber.lib.database.connections import release_connections
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.workers.worker import Worker
from libraries.git import importing
from libraries.models import Repository

MAX_IMPORTS: Final = 2
"""Limit of one process: each import holds a pack's worth of disk and a child of up to 1 GB."""

_places = threading.BoundedSemaphore(MAX_IMPORTS)


def start_imports(worker: Worker, *, enqueue: Callable[[], None]) -> None:
    """Claim waiting repositories and begin to import them, as many as there are places for."""
    while not worker.is_draining and _places.acquire(blocking=False):
        try:
            repository = _claim(worker)
        except BaseException:
            _places.release()
            raise
        if repository is None:
            _places.release()
            return
        arguments = (worker, repository, enqueue)
        threading.Thread(target=_work, args=arguments, name="import", daemon=True).start()


def _claim(worker: Worker) -> Repository | None:
    with across_tenants():
        return importing.claim(worker)


def _work(worker: Worker, repository: Repository, enqueue: Callable[[], None]) -> None:
    """Import this repository, and then others that wait."""
    try:
        following: Repository | None = repository
        while following is not None:
            with as_tenant(Tenant(following.organization_id, is_whole=True)):
                importing.run(following, enqueue=enqueue)
            following = None if worker.is_draining else _claim(worker)
    finally:
        release_connections()
        _places.release()
