"""Measure what traces cost: the CPU of one Amber without, and of one that sends them to a collector.

Only web and chat count: the ingest worker seals chats of the rounds before.

Both run at the same time, each with databases of its own, and answer by turns, so that a ratio compares seconds that
lie next to each other. The collector takes everything and does nothing with it.
"""

import asyncio
import contextlib
import statistics
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.cells import Measured, interleave
from bench.loadgen import Load
from bench.report import Finding
from bench.stand import Stand, stand
from bench.targets import amber_target

SAMPLED = "0.1"
OFF, ON = "amber", "amber, traces of 10%"


def tracing_cost(_: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Return the CPU for 1,000 tokens with traces of one turn in ten, against that without."""
    load = Load(concurrent=32, tokens=100, per_worker=3, rounds=10)
    if is_quick:
        load = Load(concurrent=4, tokens=20, per_worker=2, rounds=2)
    with _collector() as collector_url, stand() as plain, stand() as traced:
        on = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector_url,
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": SAMPLED,
        }
        with plain.amber(provider_url) as off_amber, traced.amber(provider_url, **on) as on_amber:
            targets = [amber_target(off_amber, name=OFF), amber_target(on_amber, name=ON)]
            meters = {OFF: off_amber.cpu_seconds, ON: on_amber.cpu_seconds}
            found = asyncio.run(interleave(targets, load, meters=meters))
    return [_finding(found[OFF], found[ON])]


def _finding(off: Measured, on: Measured) -> Finding:
    ratios = [b / a for a, b in zip(_per_round(off), _per_round(on), strict=True)]
    return Finding(
        "CPU for a token with traces of 10%, against none",
        statistics.median(ratios),
        "x",
        at_most=1.03,
        note=f"rounds {', '.join(f'{ratio:.2f}' for ratio in ratios)}; by role {off.cpu_by_role()}, "
        f"{on.cpu_by_role()}",
    )


def _per_round(measured: Measured) -> list[float]:
    rounds = zip(measured.cpu_seconds, measured.tokens, strict=True)
    return [(cpu["web"] + cpu["chat"]) / tokens for cpu, tokens in rounds if tokens]


@contextlib.contextmanager
def _collector() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
