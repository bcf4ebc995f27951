"""Run a worker process.

    python -m amber.worker chat --threads 64
    python -m amber.worker ingest --threads 2

Starts Celery's worker without its command line, which imports a terminal toolkit, and Django
without the apps that only pages need: together 50 MB a process.
"""

import argparse
import os
import socket
import sys
import warnings

from amber.lib.tracing.start import start_tracing, stop_tracing
from amber.lib.workers import garbage
from amber.processes import name_process

ROLE_VARIABLE = "AMBER_ROLE"
INGEST_NICENESS = 10
"""Documents and digests wait for people: where cores are short, whoever answers one comes first."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="amber.worker")
    parser.add_argument("queue", choices=("chat", "ingest"))
    parser.add_argument("--threads", type=int, required=True, help="how many tasks run at once")
    given = parser.parse_args(arguments)
    os.environ[ROLE_VARIABLE] = "worker"
    name_process(f"{given.queue} worker")
    garbage.put_off()
    start_tracing(given.queue)  # before the modules that have spans
    if given.queue == "ingest":
        os.nice(INGEST_NICENESS)
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # the web process has made them
    return _consume(given.queue, given.threads)


def _consume(queue: str, threads: int) -> int:
    from celery.exceptions import SecurityWarning

    from amber.celery import app

    # Containers and development machines run as root. Celery warns because of pickle; tasks are
    # JSON.
    warnings.simplefilter("ignore", SecurityWarning)
    worker = app.Worker(
        hostname=f"{queue}-{os.getpid()}@{socket.gethostname()}",
        pool_cls="threads",
        concurrency=threads,
        queues=[queue],
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    garbage.set_aside()
    worker.start()
    stop_tracing()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
