"""What the keeper of an ingest worker looks after: documents and repositories."""

from amber.lib.ring import waiting
from amber.lib.worker import Worker
from libraries import claims, holds, importing, switching
from libraries.rings import ring_imports, ring_ingest
from libraries.sweep import sweep_documents, sweep_repositories


class DocumentDuty:
    """A `Duty`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def begin(self) -> None:
        """Nothing waits for it."""

    def renew(self) -> None:
        holds.keep(self._worker.name)

    def sweep(self) -> None:
        """What a dead worker left; what waited for its time; what no ring came through for."""
        sweep_documents()
        sweep_repositories()
        switching.finish_switches()
        if waiting("ingest") == 0:
            if claims.is_anything_waiting():
                ring_ingest()
            if importing.is_anything_waiting():
                ring_imports()

    def drain(self) -> None:
        """Documents go back at their next step: there is nobody who waits for one to be finished."""
        holds.stop_all(holds.Stop.RELEASED)
