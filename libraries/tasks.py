"""Define Celery's tasks for documents and files; only workers import them.

A message (`libraries.queue`) for documents names none, since the queue proper is in the database. A worker
that gets one takes documents for a while and then enqueues another message, so that periodic jobs
in the same queue have their turn too.
"""

from typing import Final
from uuid import UUID

from celery import shared_task

from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.workers.worker import this_worker
from libraries.files import reading
from libraries.git import import_threads
from libraries.ingestion import indexing, leftovers
from libraries.models import File
from libraries.queue import enqueue_ingestion

SLICE_SECONDS: Final = 5.0


@shared_task(name="libraries.ingest")
def ingest(*_: str) -> None:
    if indexing.index_waiting(this_worker(), seconds=SLICE_SECONDS):
        enqueue_ingestion()


@shared_task(name="libraries.erase")
def erase(*_: str) -> None:
    with across_tenants():
        leftovers.erase_leftovers()


@shared_task(name="libraries.read_file")
def read_file(file_id: str, organization_id: str, user_id: str, guest_id: str, *_: str) -> None:
    """Read a file for models. A second message does nothing."""
    user = UUID(user_id) if user_id else None
    with as_tenant(Tenant(UUID(organization_id), user, guest_id or None)):
        rows = File.objects.before_expiry().filter(pk=file_id, read_at=None).defer("text")
        reading.read_files(rows)


@shared_task(name="libraries.import_repositories")
def import_repositories(*_: str) -> None:
    """Begin imports in threads of their own: documents need not wait for a Git server."""
    import_threads.start_imports(this_worker(), enqueue=enqueue_ingestion)
