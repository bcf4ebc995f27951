"""Measure one installation, in its process: `python -m bench.scale.driver`, one JSON line a request.

A request names a measure and how often to do it; the answer has the milliseconds on the wall, those of CPU
(this process' and Postgres' for it), the pages that Postgres looked at, and the rows of big tables that it
read in sequence. The first doing is not counted.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import django
import psycopg

from bench.scale.fill import BIG

_BLOCKS_SQL: Final = """
SELECT pg_stat_get_db_blocks_fetched(oid) FROM pg_database WHERE datname = %s
"""
_SCANS_SQL: Final = "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname = ANY(%s)"
_PIDS_SQL: Final = """
SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()
"""


def main() -> None:
    django.setup()
    logging.disable(logging.ERROR)
    from bench.scale.measures import measures

    meter = Meter()
    known: Mapping[str, Callable[[], object]] = measures()
    tell(sorted(known))
    for line in sys.stdin:
        asked = json.loads(line)
        tell(meter.measure(known[asked["measure"]], asked["rounds"]))


def tell(said: Any) -> None:
    sys.__stdout__.write(json.dumps(said) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


class Meter:
    """Reads what this process and its Postgres have used, over a connection to another database."""

    def __init__(self) -> None:
        from django.conf import settings

        self.owner = settings.AMBER_DATABASES["owner"]
        self.outside = self._connect("postgres")
        self.inside = self._connect(self.owner["NAME"])
        self.seen: dict[Callable[[], object], dict[str, Any]] = {}

    def _connect(self, name: str) -> "psycopg.Connection[Any]":
        owner = self.owner
        return psycopg.connect(dbname=name, user=owner["USER"], host=owner["HOST"], autocommit=True)

    def measure(self, work: Callable[[], object], rounds: int) -> dict[str, Any]:
        """Do it so often. Before the first time it is done twice: once for caches, once to see what it reads."""
        if work not in self.seen:
            work()
            self.seen[work] = self._watch(work)
        wall, cpu = [], []
        for _ in range(rounds):
            began, spent = time.perf_counter(), self._cpu_ms()
            work()
            wall.append((time.perf_counter() - began) * 1_000)
            cpu.append(self._cpu_ms() - spent)
        return {"wall_ms": wall, "cpu_ms": cpu, **self.seen[work]}

    def _watch(self, work: Callable[[], object]) -> dict[str, Any]:
        _flush()
        scans, blocks = self._scans(), self._blocks()
        work()
        _flush()
        pages = self._blocks() - blocks
        read = {name: count - scans[name] for name, count in self._scans().items()}
        return {
            "pages": pages,
            "scanned": {name: count for name, count in read.items() if count > 0},
        }

    def _cpu_ms(self) -> float:
        backends = self.outside.execute(_PIDS_SQL, [self.owner["NAME"]]).fetchall()
        return time.process_time() * 1_000 + sum(_running_ms(pid) for (pid,) in backends)

    def _blocks(self) -> int:
        found = self.outside.execute(_BLOCKS_SQL, [self.owner["NAME"]]).fetchone()
        assert found is not None
        return int(found[0])

    def _scans(self) -> dict[str, int]:
        return dict(self.inside.execute(_SCANS_SQL, [list(BIG)]).fetchall())


def _running_ms(pid: int) -> float:
    """Return how long a process ran on a core: the first number of its schedstat, in nanoseconds."""
    with suppress(FileNotFoundError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    return 0.0


def _flush() -> None:
    """Let the backends of this process tell their statistics."""
    from django.db import connection, connections

    from amber.lib.database.tenant import across_tenants

    for _ in range(2):  # the pools hand out their two connections by turns
        for tenant in (nullcontext(), across_tenants()):
            with tenant, connection.cursor() as cursor:
                cursor.execute("SELECT pg_stat_force_next_flush()")
            connections.close_all()
    time.sleep(0.05)


if __name__ == "__main__":
    main()
