"""Work that is a row: claimed by compare-and-set, kept by a lease, guarded by a fence.

A worker that claims a row gets a new `fence`; whoever writes for that row locks it with its fence
first (`holding`), so that a worker that was only slow cannot write after another took over.
Times are the database's. The pattern is https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
with the database as both lock and store.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

QUEUED = "queued"
RUNNING = "running"


class Fenced(Exception):
    """The row is no longer ours: another worker took over, or it ended. Stop without a trace."""


class LeasedQuerySet(models.QuerySet[Any]):
    def claim(self, pk: UUID, *, worker: str, lease_seconds: float) -> Any | None:
        """The row, now running under a new fence; None when it was not queued. Two queries."""
        claimed = self.filter(pk=pk, status=QUEUED).update(
            status=RUNNING,
            attempt=models.F("attempt") + 1,
            fence=models.F("fence") + 1,
            worker=worker,
            lease_until=Now() + timedelta(seconds=lease_seconds),
            started_at=models.functions.Coalesce("started_at", Now()),
            updated_at=Now(),
        )
        return self.get(pk=pk) if claimed else None

    def holding(self, pk: UUID, fence: int, *fields: str) -> tuple[Any, ...]:
        """Lock the row until this transaction ends; these fields as they are now.

        Only what others may change needs reading: the rest is known to whoever holds the fence.
        Raises Fenced when the row is not ours.
        """
        locked = self.select_for_update(no_key=True).filter(pk=pk, fence=fence, status=RUNNING)
        found: tuple[Any, ...] | None = locked.values_list(*fields).first()
        if found is None:
            raise Fenced
        return found

    def renew(self, ids: Iterable[UUID], *, worker: str, lease_seconds: float) -> int:
        """Renew the leases of these rows in one statement; how many this worker still holds."""
        return self.filter(pk__in=list(ids), worker=worker, status=RUNNING).update(
            lease_until=Now() + timedelta(seconds=lease_seconds)
        )

    def expired(self) -> Self:
        """Rows whose worker has been silent for longer than its lease."""
        return self.filter(status=RUNNING, lease_until__lt=Now())


class Leased(models.Model):
    """Abstract: the columns of the pattern. `status` is the subclass's, with its own states.

    `attempt` counts claims that were not released; `worker` names the process that holds it.
    """

    attempt = models.PositiveIntegerField(default=0)
    fence = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=120, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
