"""Enqueue periodic jobs. A lost message is harmless: the job is due again after its interval."""

from amber.lib.workers.queue import enqueue


def enqueue_periodic_job(name: str) -> None:
    enqueue("ingest", "operations.run_periodic_job", name)
