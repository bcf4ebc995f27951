"""Enqueue messages for documents, files, Git imports and the leftovers of deleted libraries.

But for a file's a message names no row: the queue proper is in the database, so losing a message is
harmless. A file that nobody has read is read by the turn that needs it.
"""

from uuid import UUID

from amber.lib.database.tenant import Tenant
from amber.lib.workers.queue import enqueue


def enqueue_ingestion() -> None:
    """Wake a worker for documents. Worker maintenance enqueues again while documents wait."""
    enqueue("ingest", "libraries.ingest")


def enqueue_imports() -> None:
    """Wake a worker for Git imports. Worker maintenance enqueues again while imports wait."""
    enqueue("ingest", "libraries.import_repositories")


def enqueue_erasure() -> None:
    """Wake a worker to erase what deletions left. If the message is lost, a periodic job does so within the hour."""
    enqueue("ingest", "libraries.erase")


def enqueue_reading(file_id: UUID, tenant: Tenant) -> None:
    """Have a file read for models: for its owner, who is named, since a worker is nobody."""
    whose = (tenant.organization_id, tenant.user_id or "", tenant.guest_id or "")
    enqueue("ingest", "libraries.read_file", str(file_id), *map(str, whose))
