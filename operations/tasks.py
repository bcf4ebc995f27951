"""Celery's task for periodic jobs: the message names one, `maintenance.periodic_jobs` knows what to do.

Imported by workers only.
"""

from celery import shared_task

from operations.maintenance import periodic_jobs


@shared_task(name="operations.run_periodic_job")
def run_periodic_job(name: str) -> None:
    periodic_jobs.run(name)
