"""Define the closed set of events that a turn's viewers see, and fold them into a transcript.

On the wire: `id: <seq>`, `event: <name>`, `data: <json>` (docs/stream-protocol.md). Tools and
apps add no events. What is stored equals `fold` of what was streamed; that is tested.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field


class TurnStatus(StrEnum):
    """A turn's status, as it is stored: at most 10 characters."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    is_last: ClassVar[bool] = False
    """Whether a stream ends after this event."""

    seq: int
    turn_id: str


class TurnStarted(_Event):
    event: Literal["turn.started"] = "turn.started"
    turn: dict[str, Any]
    message: dict[str, Any] | None = None


class QueuePosition(_Event):
    """Tells, before the turn starts, how many of the organization's turns wait up to this one, and why. Its
    `seq` is 0: it has no place in the stream, and is told again when it changes."""

    event: Literal["queue.position"] = "queue.position"
    position: int
    reason: str


class TurnRestarted(_Event):
    """Takes back the text and reasoning of `step`, which begins again: another worker took over, or
    the provider was lost while the model only thought."""

    event: Literal["turn.restarted"] = "turn.restarted"
    attempt: int
    step: int


class TextDelta(_Event):
    event: Literal["text.delta"] = "text.delta"
    step: int
    text: str


class ReasoningDelta(_Event):
    """More of what the model thinks before it speaks: for people who want to see it."""

    event: Literal["reasoning.delta"] = "reasoning.delta"
    step: int
    text: str


class ToolStarted(_Event):
    """`arguments` is the raw string the model wrote."""

    event: Literal["tool.started"] = "tool.started"
    step: int
    call_id: str
    name: str
    arguments: str


class ToolFinished(_Event):
    event: Literal["tool.finished"] = "tool.finished"
    step: int
    call_id: str
    ok: bool
    content: str


class SourceAdded(_Event):
    event: Literal["source.added"] = "source.added"
    step: int
    passage: dict[str, Any]


class MessageStored(_Event):
    """A row is safe in the database; `message` is its REST form."""

    event: Literal["message.stored"] = "message.stored"
    step: int
    message: dict[str, Any]


class TurnWaiting(_Event):
    """The turn waits for approval of these calls; the next event says that it goes on, or ended."""

    event: Literal["turn.waiting"] = "turn.waiting"
    calls: list[dict[str, Any]]


class TurnCompleted(_Event):
    event: Literal["turn.completed"] = "turn.completed"
    is_last: ClassVar[bool] = True
    usage: dict[str, int]
    finish_reason: str


class TurnIncomplete(_Event):
    event: Literal["turn.incomplete"] = "turn.incomplete"
    is_last: ClassVar[bool] = True
    code: str
    message: str


class TurnFailed(_Event):
    event: Literal["turn.failed"] = "turn.failed"
    is_last: ClassVar[bool] = True
    code: str
    message: str
    retryable: bool


class TurnCancelled(_Event):
    event: Literal["turn.cancelled"] = "turn.cancelled"
    is_last: ClassVar[bool] = True


class TurnSnapshot(_Event):
    """Everything that a viewer missed: `text` and `reasoning` are what was said and thought so far,
    by step (JSON keys are strings)."""

    event: Literal["turn.snapshot"] = "turn.snapshot"
    messages: list[dict[str, Any]]
    text: dict[int, str]
    reasoning: dict[int, str] = {}


Event = (
    TurnStarted
    | QueuePosition
    | TurnRestarted
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolFinished
    | SourceAdded
    | MessageStored
    | TurnWaiting
    | TurnCompleted
    | TurnIncomplete
    | TurnFailed
    | TurnCancelled
    | TurnSnapshot
)
AnyEvent = Annotated[Event, Field(discriminator="event")]

EVENT_TYPES: dict[str, type[_Event]] = {
    cls.model_fields["event"].default: cls for cls in Event.__args__
}
LAST_EVENTS: frozenset[str] = frozenset(n for n, cls in EVENT_TYPES.items() if cls.is_last)
ENDED_STATUSES: Final = tuple(s for s in TurnStatus if f"turn.{s}" in LAST_EVENTS)
LIVE_STATUSES: Final = tuple(s for s in TurnStatus if s not in ENDED_STATUSES)


class Transcript(BaseModel):
    """What a viewer knows of a turn: stored messages, unstored text and reasoning by step, how it
    ended."""

    messages: list[dict[str, Any]] = []
    text: dict[int, str] = {}
    reasoning: dict[int, str] = {}
    ended: str | None = None


def fold(events: Iterable[Event]) -> Transcript:
    """Return the transcript after these events, oldest first.

    A stored answer or call replaces the text and reasoning of its step; a restart takes back those
    of the step that begins again and of later ones; a snapshot replaces everything. Reasoning that
    led to no answer ends with the turn.
    """
    seen = Transcript()
    for event in events:
        apply_event(seen, event)
    return seen


def _put(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Add a message; one that comes again stays in its place."""
    for place, known in enumerate(messages):
        if known["id"] == message["id"]:
            messages[place] = message
            return
    messages.append(message)


def apply_event(seen: Transcript, event: Event) -> None:
    """Apply one more event, in place."""
    match event:
        case TextDelta(step=step, text=text):
            seen.text[step] = seen.text.get(step, "") + text
        case ReasoningDelta(step=step, text=text):
            seen.reasoning[step] = seen.reasoning.get(step, "") + text
        case MessageStored(step=step, message=message):
            _put(seen.messages, message)
            if message["role"] in ("assistant", "tool_call"):
                seen.text.pop(step, None)
                seen.reasoning.pop(step, None)
        case TurnRestarted(step=step):
            seen.text = {s: t for s, t in seen.text.items() if s < step}
            seen.reasoning = {s: t for s, t in seen.reasoning.items() if s < step}
        case TurnSnapshot(messages=messages, text=text, reasoning=reasoning):
            seen.messages, seen.text = list(messages), dict(text)
            seen.reasoning = dict(reasoning)
        case _:
            pass
    if event.is_last:
        seen.reasoning = {}
        seen.ended = event.event
