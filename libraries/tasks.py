"""Celery's tasks for documents: a ring (`libraries.queue`) names nothing, the queue is in the database.

A worker that is rung takes documents for a while and then rings for whoever comes next, so that
chores in the same queue have their turn too. Read by workers only.
"""

from typing import Final

from celery import shared_task

from amber.lib.workers.worker import this_worker
from libraries.git import import_threads
from libraries.ingestion import indexing, leftovers
from libraries.queue import enqueue_ingestion

SLICE_SECONDS: Final = 5.0


@shared_task(name="libraries.ingest")
def ingest() -> None:
    if indexing.work(this_worker(), seconds=SLICE_SECONDS):
        enqueue_ingestion()


@shared_task(name="libraries.erase")
def erase() -> None:
    leftovers.erase_leftovers()


@shared_task(name="libraries.import_repositories")
def import_repositories() -> None:
    """In threads of their own: an import waits for a server, and documents need not wait for it."""
    import_threads.take(this_worker(), enqueue=enqueue_ingestion)
