"""What dies, and how long people notice it: strikes one after the other, under load, each measured.

A strike is over when every answer that was under way goes on, nobody waits to be let in, and a new
question was answered. Then what died is started again, and the next strike comes once all is whole.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from engine.events import TextDelta
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load, Question, count_words
from tests.cluster.members import Member

SILENT_SECONDS: Final = 1.5
"""A pause that a reader notices: six times that between words."""
CALM_SECONDS: Final = 5.0
"""An answer goes on, and a question waits for nothing, within so long, also on a busy machine."""
LEAST_SECONDS: Final = 6.0
MOST_SECONDS: Final = 120.0


@dataclass(frozen=True)
class Failure:
    """`strike` is told how often it has struck before, and returns what it killed."""

    name: str
    strike: Callable[[Cluster, int], list[Member]]


@dataclass
class Outcome:
    """What people noticed of one strike. Times are in seconds; None where it does not apply."""

    failure: str
    killed: str
    answers: int
    """Answers under way when it struck."""
    accepted_seconds: float
    """The longest that anybody waited from asking, or from the strike, until a question was accepted."""
    answered_seconds: float
    """From asking right after the strike to the first words of the answer."""
    silence_seconds: float
    """The longest pause in an answer."""
    silent_answers: int
    """Answers that paused for over SILENT_SECONDS."""
    streams_cut: str
    """Streams that ended before their turn, and how; each went on over another connection."""
    answers_begun_again: int
    refused: str
    """Attempts to ask that failed, and how; each was repeated with its key."""
    whole_seconds: float
    """From starting again what was dead until the cluster was whole."""


def kill(*names: str) -> Callable[[Cluster, int], list[Member]]:
    """Kill the first of these, the next time the second."""

    def strike(cluster: Cluster, lap: int) -> list[Member]:
        return _kill(cluster.member(names[lap % len(names)]))

    return strike


def _kill(member: Member) -> list[Member]:
    member.kill()
    return [member]


def _reload_haproxy(cluster: Cluster, _: int) -> list[Member]:
    cluster.haproxy.reload()
    return []


FAILURES: Final = (
    Failure("nothing", lambda *_: []),
    Failure("a web process", kill("web-1", "web-2")),
    Failure("a chat worker", kill("chat-1", "chat-2")),
    Failure("an ingest worker", kill("ingest-1", "ingest-2")),
    Failure("PgBouncer", kill("pgbouncer")),
    Failure("HAProxy is reloaded", _reload_haproxy),
    Failure("the Redis primary", lambda cluster, _: _kill(cluster.redis.primary)),
    Failure("the Postgres standby", lambda cluster, _: _kill(cluster.postgres.standby.member)),
    Failure("the Postgres primary", lambda cluster, _: _kill(cluster.postgres.primary.member)),
)


class Trial:
    """Strikes a cluster under load, and writes down what came of it."""

    def __init__(self, cluster: Cluster, load: Load) -> None:
        self._cluster = cluster
        self._load = load
        self.outcomes: list[Outcome] = []

    def strike(self, failure: Failure, lap: int = 0) -> Outcome:
        self._wait_for(self._is_calm, "calm load")
        live = self._load.live()
        at = time.monotonic()
        killed = failure.strike(self._cluster, lap)
        probe = self._load.probe()
        self._wait_for(
            lambda: probe.done() and self._is_settled(live, at), f"end of {failure.name}"
        )
        settled_at = time.monotonic()
        for member in killed:
            self._cluster.mend(member)
        self._wait_for(lambda: not self._cluster.lacking(), "whole cluster")
        outcome = Outcome(
            failure=failure.name,
            killed=", ".join(member.name for member in killed),
            answers=len(live),
            whole_seconds=round(time.monotonic() - settled_at, 1),
            **_noticed(self._load.questions, at, settled_at, probe.result()),
        )
        self.outcomes.append(outcome)
        return outcome

    def _wait_for(self, check: Callable[[], object], what: str) -> None:
        def is_so() -> object:
            self._load.check()
            return check()

        self._cluster.wait_for(is_so, what, MOST_SECONDS)

    def _is_calm(self) -> bool:
        """Whether every answer goes on, and nobody waits to be let in."""
        now = time.monotonic()
        return all(
            question.is_over or now - _last_sign(question) < CALM_SECONDS
            for question in self._load.questions
        )

    def _is_settled(self, live: Sequence[Question], at: float) -> bool:
        has_gone_on = all(q.is_over or q.heard_at[-1:] > [at] for q in live)
        return time.monotonic() - at > LEAST_SECONDS and has_gone_on and self._is_calm()

    def record(self) -> list[dict[str, Any]]:
        return [asdict(outcome) for outcome in self.outcomes]


def _last_sign(question: Question) -> float:
    return max(question.asked_at, question.accepted_at, *question.heard_at[-1:])


def _noticed(
    questions: Sequence[Question], at: float, until: float, probe: Question
) -> dict[str, Any]:
    """Return what everybody saw from the strike until it was over."""
    pauses = [
        (question, end - max(begin, at))
        for question in questions
        if question.accepted_at
        for begin, end in question.silences()
        if begin < until and end > at
    ]
    waits = [q.accepted_at - max(q.asked_at, at) for q in questions if at <= q.accepted_at <= until]
    refused = [word for q in questions for when, word in q.refusals if at <= when <= until]
    cut = [word for q in questions for when, word in q.cuts if at <= when <= until]
    first = next(
        when
        for event, when in zip(probe.events, probe.heard_at, strict=True)
        if isinstance(event, TextDelta) or event.is_last
    )
    return {
        "accepted_seconds": round(max(waits), 1),
        "answered_seconds": round(first - probe.asked_at, 1),
        "silence_seconds": round(max(pause for _, pause in pauses), 1),
        "silent_answers": len({id(q) for q, pause in pauses if pause > SILENT_SECONDS}),
        "streams_cut": count_words(cut),
        "answers_begun_again": sum(
            event.event == "turn.restarted" and at <= when <= until
            for q in questions
            for event, when in zip(q.events, q.heard_at, strict=False)
        ),
        "refused": count_words(refused),
    }


HEADINGS: Final = {
    "failure": "what dies",
    "answers": "answers",
    "accepted_seconds": "let in",
    "answered_seconds": "answered",
    "silence_seconds": "silence",
    "silent_answers": "silent",
    "answers_begun_again": "again",
    "whole_seconds": "whole",
    "refused": "refused attempts",
    "streams_cut": "streams cut",
}
"""The table's columns: what a field of Outcome is called there."""


def write_table(outcomes: Sequence[dict[str, Any]]) -> str:
    rows = [list(HEADINGS.values()), *([str(o[name]) for name in HEADINGS] for o in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
