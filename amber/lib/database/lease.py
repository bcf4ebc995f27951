"""Claim work that is a row by compare-and-set, keep it by a lease, guard it by a fence.

A worker that claims a row gets a new `fence`; whoever writes for that row locks it with its fence
first (`holding`), so that a worker that was only slow cannot write after another took over.
Times are the database's, and its clock may be set back: what lies too far ahead is not waited for.
The pattern, with the database as both lock and store, is
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import connection, models
from django.db.models.functions import Now

QUEUED = "queued"
RUNNING = "running"

_TAKE_SQL = """
UPDATE "{table}" SET
    status = 'running', attempt = attempt + 1, fence = fence + 1, worker = %s,
    lease_until = statement_timestamp() + make_interval(secs => %s),
    started_at = coalesce(started_at, statement_timestamp()), updated_at = statement_timestamp()
WHERE id = %s AND status = 'queued'
"""
_HOLD_SQL = """
SELECT {columns} FROM "{table}" WHERE id = %s AND fence = %s AND status = 'running'
FOR NO KEY UPDATE
"""


class Fenced(Exception):
    """The row is no longer this worker's: another took over, or it ended. Stop without a trace."""


class LeasedQuerySet(models.QuerySet[Any]):
    def claim(self, pk: UUID, *, worker: str, lease_seconds: float) -> Any | None:
        """Return the row, now running under a new fence; None if it was not queued. Two queries."""
        return self.get(pk=pk) if self.take(pk, worker, lease_seconds) else None

    def take(self, pk: UUID, worker: str, lease_seconds: float) -> bool:
        """Claim the row without reading it; return whether it was queued. One query."""
        with connection.cursor() as cursor:
            cursor.execute(
                _TAKE_SQL.format(table=self.model._meta.db_table), [worker, lease_seconds, pk]
            )
            return bool(cursor.rowcount)

    def holding(self, pk: UUID, fence: int, *fields: str) -> tuple[Any, ...]:
        """Lock the row until this transaction ends; return these fields as they are now.

        Only what others may change needs reading: the rest is known to whoever holds the fence.
        Raises Fenced if another worker has it, or if it ended.
        """
        about = self.model._meta
        columns = [
            (about.pk if name == "pk" else about.get_field(name)).column
            for name in fields or ("pk",)
        ]
        sql = _HOLD_SQL.format(columns=", ".join(columns), table=about.db_table)
        with connection.cursor() as cursor:
            cursor.execute(sql, [pk, fence])
            found: tuple[Any, ...] | None = cursor.fetchone()
        if found is None:
            raise Fenced
        return found

    def renew(self, ids: Iterable[UUID], *, worker: str, lease_seconds: float) -> int:
        """Renew these rows' leases in one statement; return how many this worker still holds."""
        return self.filter(pk__in=list(ids), worker=worker, status=RUNNING).update(
            lease_until=Now() + timedelta(seconds=lease_seconds)
        )

    def shorten_leases(self, lease_seconds: float) -> int:
        """Cut leases that end later than any worker can have asked for: the clock was set back.

        Living workers renew their leases; the others run out as always. One statement.
        """
        longest = Now() + timedelta(seconds=2 * lease_seconds)
        return self.filter(status=RUNNING, lease_until__gt=longest).update(
            lease_until=Now() + timedelta(seconds=lease_seconds)
        )

    def expired(self) -> Self:
        """Return rows whose worker has been silent for longer than its lease."""
        return self.filter(status=RUNNING, lease_until__lt=Now())


def is_older(column: str, age: timedelta) -> models.Q:
    """Match times that are longer ago than `age`, or further ahead than that: those were written
    before the clock was set back."""
    return models.Q(**{f"{column}__lt": Now() - age}) | models.Q(**{f"{column}__gt": Now() + age})


class Leased(models.Model):
    """The columns of a leased row; abstract. `status` is the subclass's, with its own states.

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
