"""List what this process runs, renew its leases, stop what was lost, and sweep what others lost.

The half of `amber.lib.database.lease` that lives in a worker. Each model whose rows are leased has
one `Runs`; a thread that does nothing else, over a database connection of its own, renews them all:
whatever else the worker does meanwhile (a sweep that takes minutes, a periodic job, a pool whose
connections are all in use), no lease runs out. Refuses to know what the rows are: their query set
says which are unwanted (`annotate_unwanted`), their owner gives them back.
"""

import enum
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, connections, transaction

from amber.lib.database.connections import use_own_connection
from amber.lib.database.lease import RUNNING, Leased
from amber.lib.database.tenant import across_tenants
from amber.lib.workers.guard import guard, guard_row

SWEPT_AT_ONCE: Final = 200
_SWEEP_LOCK: Final = 0x616D6265
"""First key of the advisory locks, "ambe" in ASCII; the second is the table's."""


class StopReason(enum.Enum):
    """Why a running row is stopped from outside."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    FENCED = "fenced"


class RunStoppedError(Exception):
    """The work on a row goes no further; raised between two steps."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Run:
    """One attempt at one row in this process. Its work looks between two steps whether it was
    stopped."""

    def __init__(self) -> None:
        self.stopped_as: StopReason | None = None

    def stop(self, reason: StopReason) -> None:
        """Stop it, from any thread. The first reason counts."""
        with _lock:
            is_first = self.stopped_as is None
            if is_first:
                self.stopped_as = reason
        if is_first:
            self.interrupt()

    def interrupt(self) -> None:
        """Stop before the next step, where that can be done."""


_lock = threading.Lock()
_all_runs: "list[Runs]" = []


class Runs:
    """The runs of one model in this process, by id and fence: a row that was lost may be claimed
    here again."""

    def __init__(self, model: type[Leased], *, lease_seconds: float | None = None) -> None:
        self._model: Any = model
        self._lease_seconds = lease_seconds
        self._runs: dict[tuple[UUID, int], Run] = {}
        _all_runs.append(self)

    def add(self, row: Leased, run: Run | None = None) -> None:
        """List a row that was just claimed, so that its lease is renewed until it is removed."""
        with _lock:
            self._runs[row.pk, row.fence] = run or Run()

    def remove(self, rows: Iterable[Leased]) -> None:
        with _lock:
            for row in rows:
                self._runs.pop((row.pk, row.fence), None)

    @contextmanager
    def listing(self, rows: Iterable[Leased], run: Run | None = None) -> Iterator[None]:
        """List these rows for as long as the block lasts."""
        rows = list(rows)
        for row in rows:
            self.add(row, run)
        try:
            yield
        finally:
            self.remove(rows)

    def ids(self) -> list[UUID]:
        return [pk for pk, _ in self._copy()]

    def stop(self, pk: UUID, reason: StopReason) -> None:
        """Stop a row's run; nothing happens when it does not run here."""
        for (listed, _), run in self._copy().items():
            if listed == pk:
                run.stop(reason)

    def stop_all(self, reason: StopReason) -> None:
        for run in self._copy().values():
            run.stop(reason)

    def stop_reason(self, row: Leased) -> StopReason | None:
        run = self._copy().get((row.pk, row.fence))
        return None if run is None else run.stopped_as

    def check(self, row: Leased) -> None:
        """Raise RunStoppedError if the row's run was stopped."""
        if (reason := self.stop_reason(row)) is not None:
            raise RunStoppedError(reason)

    def renew(self, worker: str) -> None:
        """Renew the leases, and stop what was lost or is unwanted. Two statements; without runs
        none."""
        runs = self._copy()
        ids = [pk for pk, _ in runs]
        if not ids:
            return
        lease_seconds = _or_default(self._lease_seconds)
        self._model.objects.renew(ids, worker=worker, lease_seconds=lease_seconds)
        rows = self._model.objects.filter(
            pk__in=ids, worker=worker, status=RUNNING
        ).annotate_unwanted()
        held = {
            (pk, fence): is_unwanted
            for pk, fence, is_unwanted in rows.values_list("pk", "fence", "is_unwanted")
        }
        for key, run in runs.items():
            # What runs here and is not held by this worker was given to another one.
            if key not in held:
                run.stop(StopReason.FENCED)
            elif held[key]:
                run.stop(StopReason.CANCELLED)

    def _copy(self) -> dict[tuple[UUID, int], Run]:
        with _lock:
            return dict(self._runs)


# -- Renewing ------------------------------------------------------------------------------------


def start_renewing(worker: str, is_over: threading.Event) -> threading.Thread:
    """Renew all leases of this process until `is_over` is set.

    It connects at once, so as not to fail later when the server has no connection left.
    """
    arguments = (worker, is_over)
    thread = threading.Thread(target=_renew_until, args=arguments, name="leases", daemon=True)
    thread.start()
    return thread


def _renew_until(worker: str, is_over: threading.Event) -> None:
    with across_tenants():
        use_own_connection()
        try:
            _try_renewing(connections["default"].ensure_connection)
            while not is_over.wait(_every_seconds()):
                for runs in _all_runs:
                    _try_renewing(partial(runs.renew, worker))
        finally:
            connections.close_all()


def _try_renewing(renew: Callable[[], None]) -> None:
    """The connection is kept while all goes well, and replaced after a fault."""
    is_renewed = False
    with guard("renew_leases"):
        renew()
        is_renewed = True
    if not is_renewed:
        with guard("renew_leases"):
            connections.close_all()


def _every_seconds() -> float:
    """Return a pause so short that a lease outlives three failures."""
    return min(settings.AMBER_SWEEP_SECONDS, settings.AMBER_LEASE_SECONDS / 4)


# -- Sweeping ------------------------------------------------------------------------------------


def sweep_expired(
    part: str,
    model: type[Leased],
    give_back: Callable[[UUID], bool | None],
    *,
    lease_seconds: float | None = None,
) -> list[UUID]:
    """Call `give_back` for each row of a lost worker, in a transaction of its own.

    `give_back` looks for the row again under its lock, since its worker may have renewed the lease
    meanwhile. Return the ids for which it returned True; at most SWEPT_AT_ONCE rows a call. One
    process sweeps a table at a time; several would do no harm.
    """
    rows: Any = model._default_manager
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))",
                [_SWEEP_LOCK, model._meta.db_table],
            )
            if not cursor.fetchone()[0]:
                return []
        rows.shorten_leases(_or_default(lease_seconds))
        expired = list(rows.with_expired_lease().values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    queued = []
    # The lock was for the search; each row is decided under its own.
    for pk in expired:
        with guard_row(part, **{f"{model._meta.model_name}_id": str(pk)}), transaction.atomic():
            if give_back(pk):
                queued.append(pk)
    return queued


def _or_default(lease_seconds: float | None) -> float:
    return settings.AMBER_LEASE_SECONDS if lease_seconds is None else lease_seconds
