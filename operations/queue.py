"""Enqueues periodic jobs. A lost message is harmless: the job is due again after its interval."""

from amber.lib.workers.queue import ring


def ring_chore(name: str) -> None:
    ring("ingest", "operations.run_periodic_job", name)
