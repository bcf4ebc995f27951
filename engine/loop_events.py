"""Define the loop events, which `engine.loop` yields to whoever stores and publishes them.

Values only. `step` counts requests to the model within the turn, from 1.
"""

from dataclasses import dataclass, field

from engine.messages import MessageFields
from engine.provider.model import Usage
from engine.tool_calls import ToolCall
from engine.tools import ToolResult


@dataclass(frozen=True, slots=True)
class Text:
    """More text of the reply of this step."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of what the model thinks in this step, before it says anything."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningTakenBack:
    """The reasoning of this step counts no more: the provider was lost, and is asked again."""

    step: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of this step is whole. Without calls it is the answer and the turn is over.

    `unapproved` are those of its calls that wait for a person. `usage` is None when the provider
    did not count. Times are in seconds from the request. `provider_fields` go back to the provider
    with the reply (`engine.provider_fields`).
    """

    step: int
    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage | None
    first_token_seconds: float | None
    seconds: float
    unapproved: tuple[ToolCall, ...] = ()
    provider_fields: MessageFields = field(default_factory=dict)
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class CallStarted:
    step: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class CallFinished:
    step: int
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """These calls wait for a person; the step's other calls have results. The last loop event."""

    step: int
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ClientCallsReturned:
    """The turn has ended with these calls of client tools; its other calls have results."""

    step: int
    calls: tuple[ToolCall, ...]
    finish_reason: str


LoopEvent = (
    Text
    | Reasoning
    | ReasoningTakenBack
    | Reply
    | CallStarted
    | CallFinished
    | ApprovalNeeded
    | ClientCallsReturned
)
