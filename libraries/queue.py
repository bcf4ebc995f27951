"""Rings for documents, repositories and what a deleted library leaves: they name nothing, the queue is
in the database."""

from amber.lib.workers.queue import ring


def ring_ingest() -> None:
    """Losing a ring is normal: the keeper rings again while documents wait."""
    ring("ingest", "libraries.ingest")


def ring_imports() -> None:
    """As `ring_ingest`."""
    ring("ingest", "libraries.import_repositories")


def ring_erasure() -> None:
    """A lost ring is made good by the hourly chore."""
    ring("ingest", "libraries.erase")
