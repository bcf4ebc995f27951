"""Compare plain tables with partitioned ones: `python -m bench.partitions` (docs/scaling.md).

Starts a Postgres of its own in a fresh folder, and in it makes each table two times, with all
columns, indexes, constraints and policies of the migrations: plain, and in partitions. Both get the
same rows and answer the same statements. Prints each figure as it comes, and a table at the end.
20 million messages take 12 GB and hours of a small machine; `--messages 2000000` tells as much
about everything but the depth of indexes.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import psycopg

from amber.lib.ids import least_id_at
from bench.loadgen import say
from bench.partitions.metering import Cost, Meter
from bench.partitions.statements import STATEMENTS, World
from bench.partitions.tables import (
    SHAPES,
    STARTS,
    copy_of_template,
    load,
    make_template,
    postgres,
)

Figures = dict[str, Cost]
BATCH: Final = 5_000


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that Postgres is stopped
    counts = {
        "usage": options.messages // 2,
        "messages": options.messages,
        "chunks": options.chunks,
    }
    folder = Path(tempfile.mkdtemp(prefix="amber-bench-", dir=options.folder))
    folder.chmod(0o711)
    try:
        with postgres(folder) as url:
            make_template(url)
            for what in options.only or SHAPES:
                pair = [_measure(url, what, counts[what], parted=each) for each in (False, True)]
                _tell(what, counts[what], *pair)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="Where there is room (default: /tmp)")
    parser.add_argument("only", nargs="*", choices=[[], *SHAPES], help="Which tables; all")
    return parser.parse_args()


def _measure(url: str, what: str, count: int, *, parted: bool) -> Figures:
    shape = SHAPES[what]
    with copy_of_template(url, f"{what}_{'parted' if parted else 'plain'}") as (own, made):
        took = load(made, shape, count, parted=parted)
        say(f"  {what}, {'in partitions' if parted else 'plain'}: {took}")
        meter = Meter(made)
        found = {s.name: meter.run(s) for s in STATEMENTS[what](World(count, Random(7)))}
        if what == "usage":
            found |= _forget_a_month(meter, parted=parted)
        found["memory of a connection, in pages"] = _memory(own, shape.table)
    return found


def _forget_a_month(meter: Meter, *, parted: bool) -> Iterator[tuple[str, Cost]]:
    """Measure how the first month goes, and the vacuum after it."""
    forget = _drop if parted else _delete
    yield "a month is forgotten", meter.measure(lambda: forget(meter.connection))
    vacuum = "VACUUM (PARALLEL 0) providers_usagerecord"
    yield "vacuum after it", meter.measure(lambda: meter.connection.execute(vacuum))


def _drop(connection: "psycopg.Connection[Any]") -> None:
    connection.execute(f"DROP TABLE providers_usagerecord_{STARTS[0]:%Y_%m}")


def _delete(connection: "psycopg.Connection[Any]") -> None:
    """Delete in batches, as a periodic job does."""
    batch = (
        "DELETE FROM providers_usagerecord WHERE id IN ("
        "SELECT id FROM providers_usagerecord WHERE id < %s LIMIT %s)"
    )
    while connection.execute(batch, [least_id_at(STARTS[1]), BATCH]).rowcount:
        pass


def _memory(url: str, table: str) -> Cost:
    """Return what a fresh connection holds after it has prepared some statements about the table."""
    statements = (
        f"SELECT * FROM {table} WHERE id = %s",  # noqa: S608
        f"UPDATE {table} SET updated_at = now() WHERE id = %s",  # noqa: S608
        f"DELETE FROM {table} WHERE id = %s",  # noqa: S608
    )
    with psycopg.connect(url, autocommit=True) as fresh:
        meter = Meter(fresh)
        before = meter.memory_bytes()

        def run() -> None:
            for statement in statements * 10:
                fresh.execute(statement, [UUID(int=1)], prepare=True)

        cost = meter.measure(run)
        return Cost((meter.memory_bytes() - before) / 8_192, cost.wal_bytes, cost.cpu_ms)


def _tell(what: str, count: int, plain: Figures, parted: Figures) -> None:
    say(f"\n{what}, {count:,} rows: plain | in partitions")
    for name, cost in plain.items():
        pairs = zip(asdict(cost).items(), asdict(parted[name]).values(), strict=True)
        said = ", ".join(f"{unit} {before:,.1f} | {after:,.1f}" for (unit, before), after in pairs)
        say(f"  {name}: {said}")


if __name__ == "__main__":
    sys.exit(main())
