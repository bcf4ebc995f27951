"""Claim work that is a row by compare-and-set, keep it by a lease, guard it by a fence.

Turns, documents, Git imports and deliveries of webhooks keep to one contract. A row is `queued`,
then `running` for one worker, and then queued again, ended, or in a state of its own.

- **Claim** (`claim`, `take`): the worker gets a new `fence`, and the `attempt` is counted.
- **Renew** (`renew`): one thread of the process renews the leases of all that it runs, and learns
  what it has lost or must stop (`amber.lib.workers.leases`).
- **Write**: whoever writes for a running row locks it with its fence first (`holding`), or has the
  fence in the condition (`held_by`): a worker that was only slow writes nothing after another took
  over. It never writes LEASE_FIELDS: its copy of them is as old as the claim.
- **Leave** (`end`, `release`, `give_back`; or `Leased.leave`, which `update_leased` writes): the
  row has no worker and no lease. An attempt that is released does not count.
- **Take away** (`take_away`): another than its worker may fence it off, which is left to the sweep.
- **Sweep** (`with_expired_lease`, `lock_expired`): rows of silent workers are given back, or end.

Times are the database's, and its clock may be set back: what lies too far ahead is not waited for.
The pattern, with the database as both lock and store, is
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Self
from uuid import UUID

from django.conf import settings
from django.db import connection, models
from django.db.models import F, Value
from django.db.models.functions import Greatest, Now

from amber.lib.database.cached_update import update_row

QUEUED = "queued"
RUNNING = "running"

LEASE_FIELDS: Final = ("lease_until", "worker", "attempt")
"""Written by claim and renewal while a row runs, by whoever has it as it leaves its worker."""
NO_WORKER: Final[Mapping[str, Any]] = {"worker": "", "lease_until": None}
"""The columns of a row that no worker has."""

_TAKE_SQL = """
UPDATE "{table}" SET
    status = 'running', attempt = attempt + 1, fence = fence + 1, worker = %s,
    lease_until = statement_timestamp() + make_interval(secs => %s),
    started_at = coalesce(started_at, statement_timestamp()), updated_at = statement_timestamp()
WHERE id = ANY(%s) AND status = 'queued'
"""
# NO KEY: rows that refer to this one are written meanwhile, and only look at its key.
_HOLD_SQL = """
SELECT {columns} FROM "{table}" WHERE id = %s AND fence = %s AND status = 'running'
FOR NO KEY UPDATE
"""


class Fenced(Exception):
    """The row is no longer this worker's: another took over, or it ended. Stop without a trace."""


class LeasedQuerySet(models.QuerySet[Any]):
    def annotate_unwanted(self) -> Self:
        """Add `is_unwanted` to each row: whoever runs it should stop. Here none is."""
        return self.annotate(is_unwanted=Value(False))

    # -- Claimed, kept, written ------------------------------------------------------------------

    def claim(self, pk: UUID, *, worker: str, lease_seconds: float) -> Any | None:
        """Return the row, now running under a new fence; None if it was not queued. Two queries."""
        return self.get(pk=pk) if self.take([pk], worker, lease_seconds) else None

    def take(self, ids: Sequence[UUID], worker: str, lease_seconds: float) -> int:
        """Claim rows without reading them; return how many were queued. One query."""
        with connection.cursor() as cursor:
            cursor.execute(
                _TAKE_SQL.format(table=self.model._meta.db_table),
                [worker, lease_seconds, list(ids)],
            )
            return int(cursor.rowcount)

    def renew(self, ids: Iterable[UUID], *, worker: str, lease_seconds: float) -> int:
        """Renew these rows' leases in one statement; return how many this worker still holds."""
        return self.filter(pk__in=list(ids), worker=worker, status=RUNNING).update(
            lease_until=Now() + timedelta(seconds=lease_seconds)
        )

    def holding(self, pk: UUID, fence: int, *fields: str, beside: str = "") -> tuple[Any, ...]:
        """Lock the row until this transaction ends; return these fields as they are now, and what the
        expression `beside` reads.

        Only what others may change needs reading: the rest is known to whoever holds the fence.
        Raises Fenced if another worker has it, or if it ended.
        """
        about = self.model._meta
        columns = [
            (about.pk if name == "pk" else about.get_field(name)).column
            for name in fields or ("pk",)
        ]
        columns += [beside] if beside else []
        sql = _HOLD_SQL.format(columns=", ".join(columns), table=about.db_table)
        with connection.cursor() as cursor:
            cursor.execute(sql, [pk, fence])
            found: tuple[Any, ...] | None = cursor.fetchone()
        if found is None:
            raise Fenced
        return found

    def held_by(self, row: "Leased") -> Self:
        """Return the row if it still runs under the fence of this copy: the condition of a write
        without a lock."""
        return self.filter(pk=row.pk, fence=row.fence, status=RUNNING)

    # -- Left ------------------------------------------------------------------------------------

    def end(self, row: "Leased", status: str, **changes: Any) -> bool:
        """End the row that this copy's holder runs; False if it holds it no more. As all of these: one
        UPDATE under the fence."""
        return self._leave(row, status=status, ended_at=Now(), **changes)

    def release(self, row: "Leased", **changes: Any) -> None:
        """Queue the row for another worker to go on with; the attempt does not count."""
        uncounted = Greatest(F("attempt") - 1, Value(0))
        self._leave(row, status=QUEUED, attempt=uncounted, **changes)

    def give_back(self, row: "Leased", **changes: Any) -> None:
        """Queue the row again; the attempt counts."""
        self._leave(row, status=QUEUED, **changes)

    def return_claim(self, pk: UUID, *, worker: str) -> bool:
        """Queue a row that this worker has claimed and could not begin; whether it did. The attempt counts,
        and the last one is left to the sweep. Only before the lease runs out: there is no fence here."""
        held = self.filter(pk=pk, worker=worker, status=RUNNING)
        mine = held.filter(attempt__lt=settings.AMBER_MAX_ATTEMPTS)
        return bool(mine.update(status=QUEUED, **NO_WORKER, updated_at=Now()))

    def take_away(self) -> int:
        """Fence off the workers of these rows, which are to be run again on behalf of another person.

        The sweep gives them back soon. The attempt counts, since nobody knows how far it came. One statement.
        """
        running = self.filter(status=RUNNING)
        return running.update(worker="", lease_until=Now(), fence=F("fence") + 1)

    def _leave(self, row: "Leased", **changes: Any) -> bool:
        return bool(self.held_by(row).update(**NO_WORKER, **changes, updated_at=Now()))

    # -- Swept -----------------------------------------------------------------------------------

    def shorten_leases(self, lease_seconds: float) -> int:
        """Cut leases that end later than any worker can have asked for: the clock was set back.

        Living workers renew their leases; the others run out as always. One statement.
        """
        longest = Now() + timedelta(seconds=2 * lease_seconds)
        return self.filter(status=RUNNING, lease_until__gt=longest).update(
            lease_until=Now() + timedelta(seconds=lease_seconds)
        )

    def with_expired_lease(self) -> Self:
        """Return rows whose worker has been silent for longer than its lease."""
        return self.filter(status=RUNNING, lease_until__lt=Now())

    def lock_expired(self, pk: UUID) -> Any | None:
        """Lock the row if it is expired still, and return it.

        None if it is locked already: its worker is alive and about to end its work.
        """
        rows = self.with_expired_lease().select_for_update(
            no_key=True, skip_locked=True, of=("self",)
        )
        return rows.filter(pk=pk).first()


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
    status: Any

    class Meta:
        abstract = True

    @property
    def is_last_attempt(self) -> bool:
        """Whether the row has cost so many workers that it ends with this one."""
        return self.attempt >= settings.AMBER_MAX_ATTEMPTS

    def leave(self, status: str, *, is_counted: bool = True, worker: str = "") -> None:
        """Take the row from its worker, in memory; `update_leased` writes it. `worker` is the name
        that stays."""
        self.status, self.worker, self.lease_until = status, worker, None
        if not is_counted:
            self.attempt -= 1


def update_leased(row: Leased, *names: str, where: Mapping[str, Any] | None = None) -> bool:
    """Update columns as `update_row` does; those of the lease once the row has left its worker, and
    never before. Return whether it matched `where`. One query."""
    if set(names) & set(LEASE_FIELDS):
        raise TypeError("Columns of a lease are not written by name.")
    return update_row(row, *names, *(() if row.status == RUNNING else LEASE_FIELDS), where=where)
