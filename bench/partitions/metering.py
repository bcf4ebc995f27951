"""Count what statements cost by Postgres' own counters, which do not depend on the machine's load.

Pages are those looked at, in memory or not; WAL is what a standby and a backup must carry; CPU is
the backend's own, without waiting.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg

from bench.partitions.statements import Statement


@dataclass(frozen=True, slots=True)
class Cost:
    pages: float
    wal_bytes: float
    cpu_ms: float

    def __sub__(self, before: "Cost") -> "Cost":
        return Cost(
            self.pages - before.pages,
            self.wal_bytes - before.wal_bytes,
            self.cpu_ms - before.cpu_ms,
        )

    def each(self, times: int) -> "Cost":
        return Cost(
            round(self.pages / times, 1),
            round(self.wal_bytes / times),
            round(self.cpu_ms / times, 2),
        )


class Meter:
    """Measures one connection, whose process must be on this machine."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        connection.execute("SET max_parallel_workers_per_gather = 0; SET jit = off")
        self._process = psutil.Process(connection.info.backend_pid)

    def run(self, statement: Statement) -> Cost:
        """Run a statement as often as it says, prepared, after five times that do not count."""
        self.connection.execute("RESET ALL; SET max_parallel_workers_per_gather = 0; SET jit = off")
        self.connection.execute("SET session_replication_role = replica")
        if statement.settings:
            self.connection.execute(statement.settings)
        for _ in range(5):
            self._execute(statement)
        self.connection.execute("CHECKPOINT")

        def times() -> None:
            for _ in range(statement.times):
                self._execute(statement)

        return self.measure(times).each(statement.times)

    def measure(self, work: Callable[[], object]) -> Cost:
        self._read()  # what the reading itself costs is then the same before and after
        before = self._read()
        work()
        return self._read() - before

    def memory_bytes(self) -> int:
        return int(self._fetch("SELECT sum(total_bytes) FROM pg_backend_memory_contexts"))

    def _execute(self, statement: Statement) -> None:
        self.connection.execute(statement.sql, statement.values(), prepare=True)

    def _read(self) -> Cost:
        self.connection.execute("SELECT pg_stat_force_next_flush()")
        wal = self._fetch("SELECT wal_bytes FROM pg_stat_get_backend_wal(pg_backend_pid())")
        pages = self._fetch(
            "SELECT sum(coalesce(hits, 0) + coalesce(read_bytes, 0) / 8192)"
            " FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation'"
        )
        spent = self._process.cpu_times()
        return Cost(float(pages or 0), float(wal), (spent.user + spent.system) * 1_000)

    def _fetch(self, query: str) -> Any:
        found = self.connection.execute(query).fetchone()
        assert found is not None
        return found[0]
