"""Maintain an ingest worker's documents and repositories: renew leases, sweep, drain."""

from collections.abc import Callable, Mapping

from amber.lib.workers.queue import waiting
from amber.lib.workers.worker import Worker
from libraries.git import importing
from libraries.ingestion import claims, holds, switching
from libraries.queue import enqueue_imports, enqueue_ingestion
from libraries.sweep import sweep_documents, sweep_repositories


class DocumentMaintenance:
    """A `QueueMaintenance` of the `ingest` queue."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def begin(self) -> None:
        """Do nothing: no first document is waited for."""

    def renew(self) -> None:
        holds.keep(self._worker.name)

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
        holds.stop_all(holds.HoldEnd.RELEASED)


def _enqueue_waiting() -> None:
    if waiting("ingest") == 0:
        if claims.is_anything_waiting():
            enqueue_ingestion()
        if importing.is_anything_waiting():
            enqueue_imports()
