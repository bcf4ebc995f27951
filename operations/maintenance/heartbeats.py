"""Record which queues are consumed: each worker's row says when it last showed that it consumes.

Worker maintenance writes it (`beat`), the web process reads it; the broker is not asked.
"""

import time
from datetime import timedelta
from typing import Final

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Now

from amber.lib.database.lease import is_older
from amber.lib.secrets import newest_key_id
from amber.lib.workers.interpreter_watch import held_count
from amber.lib.workers.worker import Worker
from operations.models import WorkerHeartbeat

CONSUMING_SECONDS: Final = 15.0
"""A worker whose loop has been silent for longer does not count as consuming."""
ALIVE: Final = timedelta(seconds=20)
"""A worker that has not shown itself for longer does not count at all."""


def beat(worker: Worker, queue: str) -> None:
    """Record that the worker consumes its queue: one statement; none if it lives but does not
    consume."""
    if time.monotonic() - worker.consuming_at > CONSUMING_SECONDS:
        return
    WorkerHeartbeat.objects.update_or_create(
        worker=worker.name,
        defaults={
            "queue": queue,
            "beat_at": Now(),
            "held_count": held_count(),
            "secret_key_id": newest_key_id(),
        },
    )


def consuming_queues() -> set[str]:
    """Return the queues that some worker consumes right now; /readyz asks for them."""
    return set(_alive().values_list("queue", flat=True))


def count_workers() -> dict[str, int]:
    """Return, by queue, how many workers consume it right now; none has no entry."""
    rows = _alive().values("queue").annotate(n=Count("pk"))
    return {row["queue"]: row["n"] for row in rows}


def held_counts() -> dict[str, int]:
    """Return, by queue, how often the interpreter was held for too long in the workers that
    live."""
    rows = _alive().values("queue").annotate(n=Sum("held_count"))
    return {row["queue"]: row["n"] for row in rows}


def workers_of_other_keys() -> list[str]:
    """Return the names of the living workers that encrypt with another key than this process."""
    others = _alive().exclude(secret_key_id=newest_key_id())
    return list(others.order_by("worker").values_list("worker", flat=True))


def forget_dead_workers() -> None:
    """Delete the rows of workers that have not shown themselves for an hour."""
    WorkerHeartbeat.objects.filter(is_older("beat_at", timedelta(hours=1))).delete()


def _alive() -> QuerySet[WorkerHeartbeat]:
    return WorkerHeartbeat.objects.exclude(is_older("beat_at", ALIVE))
