"""Enqueue messages for documents, Git imports and the leftovers of deleted libraries.

A message names no row: the queue proper is in the database, so losing a message is harmless.
"""

from amber.lib.workers.queue import enqueue


def enqueue_ingestion() -> None:
    """Wake a worker for documents. Worker maintenance enqueues again while documents wait."""
    enqueue("ingest", "libraries.ingest")


def enqueue_imports() -> None:
    """Wake a worker for Git imports. Worker maintenance enqueues again while imports wait."""
    enqueue("ingest", "libraries.import_repositories")


def enqueue_erasure() -> None:
    """Wake a worker for what deletions left. The hourly periodic job makes good a lost message."""
    enqueue("ingest", "libraries.erase")
