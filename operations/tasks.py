"""Run a periodic job for Celery: the message names it, `periodic_jobs` knows what to do.

Only workers import this module.
"""

from celery import shared_task

from amber.lib.workers.guard import guard
from operations.maintenance import periodic_jobs


@shared_task(name="operations.run_periodic_job")
def run_periodic_job(name: str, *_: str) -> None:
    with guard(name):  # an outage needs no trace: the job is due again
        periodic_jobs.run(name)
