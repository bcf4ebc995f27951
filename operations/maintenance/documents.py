"""Maintain an ingest worker's documents and repositories: sweep, drain."""

from collections.abc import Callable, Mapping

from amber.lib.workers.leases import StopReason
from amber.lib.workers.queue import waiting
from libraries.git import importing
from libraries.ingestion import claims, switching
from libraries.queue import enqueue_imports, enqueue_ingestion
from libraries.sweep import sweep_documents, sweep_repositories


class DocumentMaintenance:
    """A `QueueMaintenance` of the `ingest` queue."""

    def begin(self) -> None:
        """Do nothing: no first document is waited for."""

    @property
    def sweeps(self) -> Mapping[str, Callable[[], None]]:
        """Find what a dead worker left, what waited for its time, and what lost its message."""
        return {
            "sweep_documents": sweep_documents,
            "sweep_repositories": sweep_repositories,
            "finish_switches": switching.finish_switches,
            "enqueue_waiting_documents": _enqueue_waiting,
        }

    def drain(self) -> None:
        """Release documents at their next step: nobody waits for one to be finished."""
        claims.running_documents.stop_all(StopReason.RELEASED)


def _enqueue_waiting() -> None:
    if waiting("ingest") == 0:
        if claims.is_anything_waiting():
            enqueue_ingestion()
        if importing.is_anything_waiting():
            enqueue_imports()
