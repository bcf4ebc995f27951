"""What the keeper of an ingest worker looks after: documents and repositories."""

from collections.abc import Callable, Mapping

from amber.lib.workers.queue import waiting
from amber.lib.workers.worker import Worker
from libraries.git import importing
from libraries.ingestion import claims, holds, switching
from libraries.queue import enqueue_imports, enqueue_ingestion
from libraries.sweep import sweep_documents, sweep_repositories


class DocumentMaintenance:
    """A `Duty`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def begin(self) -> None:
        """Nothing waits for it."""

    def renew(self) -> None:
        holds.keep(self._worker.name)

    @property
    def sweeps(self) -> Mapping[str, Callable[[], None]]:
        """What a dead worker left; what waited for its time; what no ring came through for."""
        return {
            "sweep_documents": sweep_documents,
            "sweep_repositories": sweep_repositories,
            "finish_switches": switching.finish_switches,
            "enqueue_waiting_documents": _enqueue_waiting,
        }

    def drain(self) -> None:
        """Documents go back at their next step: there is nobody who waits for one to be finished."""
        holds.stop_all(holds.HoldEnd.RELEASED)


def _enqueue_waiting() -> None:
    if waiting("ingest") == 0:
        if claims.is_anything_waiting():
            enqueue_ingestion()
        if importing.is_anything_waiting():
            enqueue_imports()
