"""Compare a large installation with a small one: `python -m bench.scale` (`make bench-scale`).

Both are filled once and kept in var/bench-scale. What the probe, an organization that is the same in both,
asks is measured first in one, then in the other, by turns; so are workers' statements, periodic jobs, operators'
pages, and first tokens through real processes. Each line is a ratio of medians within this sitting. `--size
medium` is a tenth of `full`, `small` a hundredth.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import IO, Any, Final

import psycopg

from bench import report
from bench.loadgen import say
from bench.report import Finding
from bench.scale import server
from bench.scale.first_token import first_tokens
from bench.scale.world import SIZES
from bench.stand import ROOT

SMALL: Final = "reference"
GOAL: Final = 1.5
DRIVER_POOL: Final = "2"
PAIRS: Final = 5
_SIZES_SQL: Final = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY pg_total_relation_size(oid) DESC
LIMIT 10
"""


def main() -> int:
    options = _options()
    if options.delete:
        shutil.rmtree(server.data_folder(), ignore_errors=True)
        shutil.rmtree(server.FOLDER, ignore_errors=True)
        return 0
    with server.servers() as environ:
        for name in (SMALL, options.size):
            _fill(environ, name, options.chunks)
        _tell_sizes(environ, options.size)
        findings = _compare(environ, options)
        findings += first_tokens(environ, (SMALL, options.size), options.only, GOAL)
    head = report.machine() | {"size": options.size}
    say(report.table(findings))
    say(f"\n{report.write(ROOT / 'var' / 'bench', head, findings)}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=[*SIZES][1:], default="full")
    parser.add_argument("--chunks", type=int, help="instead of the size's, when it is filled")
    parser.add_argument("--only", default="", help="measures whose name has this text")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--delete", action="store_true", help="delete all that was filled")
    return parser.parse_args()


def _fill(environ: Mapping[str, str], name: str, chunks: int | None) -> None:
    if server.is_filled(environ, name):
        say(f"{name}: as it was filled before")
        return
    say(f"{name}: filling")
    server.create(environ, name)
    subprocess.run(
        [sys.executable, "-m", "bench.scale.fill", name, *([str(chunks)] if chunks else [])],
        env={**server.installation_environ(environ, name), "AMBER_CONNECT_AS": "owner"},
        cwd=ROOT,
        check=True,
    )
    server.note_filled(environ, name)


def _tell_sizes(environ: Mapping[str, str], name: str) -> None:
    owner = server.installation_environ(environ, name)["AMBER_OWNER_DATABASE_URL"]
    with psycopg.connect(owner) as connection:
        for table, rows, indexes in connection.execute(_SIZES_SQL):
            say(f"  {table:28} {rows / 2**20:8,.0f} MB, indexes {indexes / 2**20:8,.0f} MB")


def _compare(environ: Mapping[str, str], options: argparse.Namespace) -> list[Finding]:
    with ExitStack() as drivers:
        small, large = (
            drivers.enter_context(_driver(environ, name)) for name in (SMALL, options.size)
        )
        wanted = [name for name in small.measures if options.only in name]
        return [_pair(name, small, large, options.pairs) for name in wanted]


class _Driver:
    """A process that measures one installation."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self.measures: Sequence[str] = json.loads(self._out.readline())

    def measure(self, name: str, rounds: int) -> dict[str, Any]:
        self._in.write(json.dumps({"measure": name, "rounds": rounds}) + "\n")
        self._in.flush()
        found: dict[str, Any] = json.loads(self._out.readline())
        return found


@contextmanager
def _driver(environ: Mapping[str, str], name: str) -> Iterator[_Driver]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.scale.driver"],
        env={**server.installation_environ(environ, name), "AMBER_DB_POOL": DRIVER_POOL},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _Driver(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _pair(name: str, small: _Driver, large: _Driver, pairs: int) -> Finding:
    """Measure both by turns; the finding is the ratio of CPU, with pages and plans for its reason."""
    taken = [(small.measure(name, 1), large.measure(name, 1)) for _ in range(pairs)]
    before, after = ([pair[side] for pair in taken] for side in (0, 1))
    cpu = [_median(some, "cpu_ms") for some in (before, after)]
    wall = [_median(some, "wall_ms") for some in (before, after)]
    pages = [some[-1]["pages"] for some in (before, after)]
    note = (
        f"CPU {cpu[0]:.1f} and {cpu[1]:.1f} ms; {wall[0]:.0f} and {wall[1]:.0f} ms; pages {pages}"
    )
    if scanned := after[-1]["scanned"]:
        note += f"; READ IN SEQUENCE: {scanned}"
    finding = Finding(name, cpu[1] / cpu[0], "x", at_most=GOAL, note=note)
    say(f"  {name}: {finding.value:.2f} ({note})")
    return finding


def _median(some: Sequence[Mapping[str, Any]], what: str) -> float:
    return float(median(each for one in some for each in one[what]))


if __name__ == "__main__":
    sys.exit(main())
