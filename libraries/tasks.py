"""Celery's doorbells for documents: a ring names nothing, the queue is in the database.

A worker that is rung takes documents for a while and then rings for whoever comes next, so that
chores in the same queue have their turn too.
"""

from typing import Final

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError

from amber.lib.worker import this_worker
from libraries import erasure, import_threads, indexing

logger = structlog.get_logger(__name__)

SLICE_SECONDS: Final = 5.0
_PUBLISH_ONCE: Final = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}


@shared_task(name="libraries.ingest")
def ingest() -> None:
    if indexing.work(this_worker(), seconds=SLICE_SECONDS):
        ring_ingest()


@shared_task(name="libraries.erase")
def erase() -> None:
    erasure.erase_leftovers()


@shared_task(name="libraries.import_repositories")
def import_repositories() -> None:
    """In threads of their own: an import waits for a server, and documents need not wait for it."""
    import_threads.take(this_worker(), ring=ring_ingest)


def ring_imports() -> None:
    """As `ring_ingest`."""
    try:
        import_repositories.apply_async(retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", reason=type(exc).__name__)


def ring_ingest() -> None:
    """Losing a ring is normal: the keeper rings again while documents wait."""
    try:
        ingest.apply_async(retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", reason=type(exc).__name__)


def ring_erasure() -> None:
    """A lost ring is made good by the hourly chore."""
    try:
        erase.apply_async(retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", reason=type(exc).__name__)
