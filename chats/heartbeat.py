"""Which queues are consumed: each worker's row says when it last showed that it consumes.

Written by the keeper (`beat`), read by the web process; who consumes is not asked of the broker.
"""

import time
from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from amber.lib.lease import is_older
from amber.lib.worker import Worker
from chats.models import WorkerHeartbeat

CONSUMING_SECONDS: Final = 15.0
"""A consumer whose loop has not shown itself for longer is not consuming."""


def beat(worker: Worker, queue: str) -> None:
    """One statement; none for a worker that lives and does not consume."""
    if time.monotonic() - worker.consuming_at > CONSUMING_SECONDS:
        return
    WorkerHeartbeat.objects.update_or_create(
        worker=worker.name, defaults={"queue": queue, "beat_at": Now()}
    )


def consuming_queues(max_age_seconds: float = 20.0) -> set[str]:
    """The queues that some worker consumes right now: what /readyz asks for."""
    old = is_older("beat_at", timedelta(seconds=max_age_seconds))
    alive = WorkerHeartbeat.objects.exclude(old)
    return set(alive.values_list("queue", flat=True))
