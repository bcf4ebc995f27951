"""Define Celery's tasks for documents; only workers import them.

A message (`libraries.queue`) names no document, since the queue proper is in the database. A worker
that gets one takes documents for a while and then enqueues another message, so that periodic jobs
in the same queue have their turn too.
"""

from typing import Final

from celery import shared_task

from amber.lib.database.tenant import across_tenants
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
    with across_tenants():
        leftovers.erase_leftovers()


@shared_task(name="libraries.import_repositories")
def import_repositories() -> None:
    """Begin imports in threads of their own: documents need not wait for a Git server."""
    import_threads.start_imports(this_worker(), enqueue=enqueue_ingestion)
