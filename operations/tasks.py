"""Run a periodic job for Celery: the message names it, `periodic_jobs` knows what to do.

Only workers import this module.
"""

from celery import shared_task

from operations.maintenance import periodic_jobs


@shared_task(name="operations.run_periodic_job")
def run_periodic_job(name: str, *_: str) -> None:
    periodic_jobs.run(name)
