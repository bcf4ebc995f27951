"""Measure the first token of a question in a small and in a large installation, through real processes.

The same person of the probe asks one question after the other, by turns here and there. The chats that this
takes stay: some hundreds. It comes last, and statistics are made anew after it.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from bench.cells import Measured, interleave
from bench.loadgen import FIRST_TOKEN_MS, Load, say
from bench.report import Finding
from bench.scale import server
from bench.stand import RunningAmber, Stand, new_key, stand
from bench.targets import amber_target

PERSON: Final = ("person-0@scale.example", "Organization 0")
STORED: Final = (0, 200)
"""Messages of the chats that are asked in."""
LOAD: Final = Load(concurrent=1, tokens=20, per_worker=15, rounds=6)
UNLIMITED: Final = {"AMBER_RATE_KEY": "0", "AMBER_RATE_USER": "0"}
NAME: Final = "first token, in a chat of {} messages"


def first_tokens(
    environ: Mapping[str, str], names: Sequence[str], wanted: str, goal: float
) -> list[Finding]:
    """Return the ratio of what Amber adds to the provider's first token, large to small, for each STORED."""
    lengths = [stored for stored in STORED if wanted in NAME.format(stored)]
    if not lengths:
        return []
    with stand() as place, ExitStack() as running:
        provider = running.enter_context(place.provider())
        ambers = {
            name: running.enter_context(_amber(place, provider, environ, name)) for name in names
        }
        findings = [_finding(ambers, stored, goal) for stored in lengths]
    for name in names:
        server.analyze(environ, name)
    return findings


@contextmanager
def _amber(
    place: Stand, provider_url: str, environ: Mapping[str, str], name: str
) -> Iterator[RunningAmber]:
    """Run Amber on this installation, with a key of the probe's first person."""
    folder = {"AMBER_VAR_DIR": str(place.folder / name)}
    own = {**server.installation_environ(environ, name), **UNLIMITED, **folder}
    with place.amber(provider_url, **own) as amber:
        yield replace(amber, api_key=new_key(*PERSON, own))


def _finding(ambers: Mapping[str, RunningAmber], stored: int, goal: float) -> Finding:
    targets = [amber_target(amber, stored=stored, name=name) for name, amber in ambers.items()]
    small, large = asyncio.run(interleave(targets, LOAD)).values()
    note = f"{_added_ms(small):.1f} and {_added_ms(large):.1f} ms added to the provider's"
    if errors := small.errors + large.errors:
        note = f"{errors} ERRORS; {note}"
    finding = Finding(
        NAME.format(stored), _added_ms(large) / _added_ms(small), "x", at_most=goal, note=note
    )
    say(f"  {finding.what}: {finding.value:.2f} ({note})")
    return finding


def _added_ms(measured: Measured) -> float:
    return measured.ttft_ms - FIRST_TOKEN_MS
