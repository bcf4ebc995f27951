"""Rings for documents, repositories and what a deleted library leaves: they name nothing, the queue is
in the database."""

from amber.lib.workers.queue import enqueue


def enqueue_ingestion() -> None:
    """Losing a ring is normal: the keeper rings again while documents wait."""
    enqueue("ingest", "libraries.ingest")


def enqueue_imports() -> None:
    """As `enqueue_ingestion`."""
    enqueue("ingest", "libraries.import_repositories")


def enqueue_erasure() -> None:
    """A lost ring is made good by the hourly chore."""
    enqueue("ingest", "libraries.erase")
