"""Draw when what happened in a turn: waiting for a worker, for the first token, answer and tools.

It reads times alone. A turn that has not ended is drawn up to now.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from amber.lib.operator_pages.cells import write_number
from chats.models import ChatMessage, Turn
from engine.messages import MessageRole

LEAST_WIDTH_PERCENT: Final = 0.6
"""What takes no time is drawn as a line that can be seen."""

_CALLS: Final = (MessageRole.TOOL_CALL, MessageRole.TOOL)
MAX_CALLS: Final = 50


@dataclass(frozen=True, slots=True)
class CallMark:
    """That a call was stored, or its result: `role` says which."""

    role: str
    call_id: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Span:
    """One line of the picture. `x` and `width` are its place in percent, as SVG wants them.

    `kind` is queued, thinking, answer or tool. `is_open`: it goes on, or its end was not recorded.
    """

    kind: str
    label: str
    start_ms: int
    took_ms: int
    x: str
    width: str
    is_open: bool

    @property
    def start(self) -> str:
        return write_ms(self.start_ms)

    @property
    def took(self) -> str:
        return write_ms(self.took_ms)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The turn's spans, in the order of their beginnings; `ticks` are times along the axis."""

    spans: tuple[Span, ...]
    total_ms: int
    is_live: bool

    @property
    def total(self) -> str:
        return write_ms(self.total_ms)


def write_ms(value: int) -> str:
    """Write a duration as people read it: 240 ms, 2.4 s, 3 min 20 s."""
    if value < 1_000:
        return f"{value} ms"
    if value < 60_000:
        return f"{write_number(value / 1_000, 1)} s"
    return f"{value // 60_000} min {value % 60_000 // 1_000} s"


def draw_timeline(
    turn: Turn, calls: Iterable[CallMark], *, now: datetime | None = None
) -> Timeline:
    """Return the turn's time line, from when it was asked."""
    marks = list(calls)
    end = turn.ended_at or max(now or timezone.now(), *(mark.at for mark in marks), turn.created_at)
    total = max(end - turn.created_at, timedelta(milliseconds=1))
    spans = [
        _span(turn.created_at, total, *each)
        for each in sorted(_spans(turn, marks, end), key=lambda each: each[2])
    ]
    return Timeline(tuple(spans), round(total / timedelta(milliseconds=1)), turn.is_live)


_Drawn = tuple[str, str, datetime, datetime, bool]


def _spans(turn: Turn, marks: list[CallMark], end: datetime) -> Iterator[_Drawn]:
    """Yield each span's kind, words, beginning, end, and whether it goes on."""
    started, first = turn.started_at, turn.first_token_at
    is_live = turn.is_live
    yield "queued", _("Queued"), turn.created_at, started or end, is_live and not started
    if started:
        yield "thinking", _("Until the first words"), started, first or end, is_live and not first
    if first:
        yield "answer", _("Answering"), first, end, is_live
    results = {mark.call_id: mark.at for mark in marks if mark.role == MessageRole.TOOL}
    called = [mark for mark in marks if mark.role == MessageRole.TOOL_CALL]
    for mark in called[:MAX_CALLS]:
        ended = results.get(mark.call_id)
        words = _("Tool %(name)s") % {"name": mark.name}
        yield "tool", words, mark.at, ended or end, ended is None


def _span(
    begin: datetime,
    total: timedelta,
    kind: str,
    label: str,
    start: datetime,
    end: datetime,
    is_open: bool,
) -> Span:
    """Place a span; clocks of two machines may differ, so nothing begins before the turn."""
    start = max(start, begin)
    took = max(end - start, timedelta())
    width = max(100 * (took / total), LEAST_WIDTH_PERCENT)
    x = min(100 * ((start - begin) / total), 100 - LEAST_WIDTH_PERCENT)
    millisecond = timedelta(milliseconds=1)
    return Span(
        kind,
        label,
        round((start - begin) / millisecond),
        round(took / millisecond),
        x=f"{x:.3f}%",
        width=f"{min(width, 100 - x):.3f}%",
        is_open=is_open,
    )


def call_marks(turn: Turn) -> list[CallMark]:
    """Return when the turn's calls and their results were stored, oldest first. One query."""
    if turn.chat_id is None:
        return _marks_in((turn.output or {}).get("messages", []))
    rows = ChatMessage.objects.filter(turn=turn, role__in=_CALLS).order_by("created_at", "id")
    found = rows.values_list("role", "tool_call__id", "tool_call__name", "created_at")
    return [CallMark(role, str(pk), str(name), at) for role, pk, name, at in found]


def _marks_in(messages: Iterable[Mapping[str, Any]]) -> list[CallMark]:
    """Return the marks in what a turn without a chat wrote, which is in the form of REST."""
    marks = []
    for message in messages:
        call, at = message.get("tool_call"), parse_datetime(str(message.get("created_at", "")))
        if message.get("role") in _CALLS and isinstance(call, Mapping) and at is not None:
            marks.append(CallMark(message["role"], str(call.get("id")), str(call.get("name")), at))
    return marks
