"""Read from a replica what bears an answer that is some seconds old, and never one's own past.

    @may_be_stale
    def get(self, request): ...        # a whole request that only reads

Two rules, for AMBER_REPLICA_LAG_SECONDS each. Whoever wrote something reads from the primary for that long
(`note_write`; Redis tells all processes), and a connection to a replica that lacks what the primary had
written that long ago is not used. So nobody misses what they wrote themselves, and nothing is older than
that. In doubt, and whenever a replica is lost, the primary answers. Row-level policies hold as they do
there: the login is the same, and each transaction says its tenant.

Positions are those of Postgres' log (https://www.postgresql.org/docs/current/functions-admin.html,
`pg_current_wal_lsn`): they need no clocks that agree, and say so, too, if a replica hears nothing any more.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.database.tenant import DEFAULT, Tenant, current_tenant

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

logger = structlog.get_logger(__name__)

REPLICA: Final = "replica"
LOOK_SECONDS: Final = 0.5
"""How often a process asks the primary for its position."""
LOST_SECONDS: Final = 5.0
"""How long a process leaves a replica alone that it could not reach: an attempt costs a request up to a
second."""


class PrimaryPositions:
    """Where the primary's log was in the last seconds, as this process saw it."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def find_needed(self, lag_seconds: float) -> int:
        """Return the position that a replica must have reached. At most one query."""
        with self._lock:
            now = time.monotonic()
            while self._seen and now - self._seen[0][0] > lag_seconds:
                self._seen.popleft()
            if not self._seen or now - self._seen[-1][0] > LOOK_SECONDS:
                self._seen.append((now, _position("pg_current_wal_lsn")))
            return self._seen[0][1]


class ReplicaState:
    """Whether this process can use the replica; a change is logged, once."""

    def __init__(self) -> None:
        self._lost_until = 0.0
        self._left_for = ""

    @property
    def is_lost(self) -> bool:
        return time.monotonic() < self._lost_until

    def note_lost(self, error: Exception) -> None:
        self._lost_until = time.monotonic() + LOST_SECONDS
        self._note(type(error).__name__)

    def note_lag(self) -> None:
        self._note("lag")

    def note_used(self) -> None:
        self._note("")

    def _note(self, reason: str) -> None:
        if reason == self._left_for:
            return
        if reason:
            logger.warning("replica_left", reason=reason)
        else:
            logger.info("replica_used_again")
        self._left_for = reason


_positions: Final = PrimaryPositions()
_state: Final = ReplicaState()


def may_be_stale(read: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Let this function answer from the replica; it must only read.

    Costs a round trip to Redis and one to the replica, and neither without DATABASE_REPLICA_URL. If the
    replica is lost meanwhile, the function is called anew, on the primary.
    """

    @wraps(read)
    def read_somewhere(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        if not _may_use_replica():
            return read(*args, **kwargs)
        needed = _positions.find_needed(settings.AMBER_REPLICA_LAG_SECONDS)
        try:
            with _on_replica():
                if _position("pg_last_wal_replay_lsn") >= needed:
                    answer = read(*args, **kwargs)
                    _state.note_used()
                    return answer
            _state.note_lag()
        except (OperationalError, InterfaceError) as error:
            _state.note_lost(error)
        return read(*args, **kwargs)

    return read_somewhere


def note_write(tenant: Tenant | None) -> None:
    """Remember that this person's rows changed: they read from the primary for a while.

    Call it after commit. Without Redis nobody reads from the replica, so that a lost note does no harm.
    """
    command = note_command(tenant)
    if command is None:
        return
    try:
        amber_redis.client().execute_command(*command)  # type: ignore[no-untyped-call]
    except (RedisError, OSError) as error:
        logger.warning("write_not_noted", reason=type(error).__name__)


def note_command(tenant: Tenant | None) -> Sequence[Any] | None:
    """Return what `note_write` tells Redis; None without a replica, or for nobody."""
    if not _is_configured() or tenant is None or tenant.organization_id is None:
        return None
    kept_seconds = int(settings.AMBER_REPLICA_LAG_SECONDS) + 2  # no less than a replica may lag
    return (b"SET", _written_key(tenant), b"1", b"EX", kept_seconds)


def _is_configured() -> bool:
    return REPLICA in connections.settings


def _written_key(tenant: Tenant) -> bytes:
    return amber_redis.key("written", tenant.organization_id, tenant.user_setting)


def _may_use_replica() -> bool:
    # Work across tenants has the system's connection there, whose rights the replica's lacks.
    if not _is_configured() or _state.is_lost or connections[DEFAULT].alias != DEFAULT:
        return False
    return not connections[DEFAULT].in_atomic_block and not _wrote_lately(current_tenant())


def _wrote_lately(tenant: Tenant | None) -> bool:
    """Return whether the person wrote, or nobody knows."""
    if tenant is None:
        return True
    try:
        return bool(amber_redis.client().exists(_written_key(tenant)))
    except (RedisError, OSError):
        return True


@contextmanager
def _on_replica() -> Iterator[None]:
    """Let this thread's default connection be the replica's inside of the block."""
    outer: Any = connections[DEFAULT]
    outer.close()
    inner: Any = connections[REPLICA]
    connections[DEFAULT] = inner
    try:
        yield
    finally:
        connections[DEFAULT] = outer
        inner.close()


def _position(function: str) -> int:
    """Return a position in the log of the server that this thread is connected to; 0 if it has none."""
    with connections[DEFAULT].cursor() as cursor:
        cursor.execute(f"SELECT {function}()::text")
        (found,) = cursor.fetchone()
    high, low = (int(part, 16) for part in (found or "0/0").split("/"))
    return (high << 32) + low
