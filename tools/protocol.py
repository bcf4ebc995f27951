"""Define what every tool offers, wherever it comes from, and what a call knows of its turn.

Each source of tools has its kind of `OfferedTool`; `tools.calling.toolbox` offers them to the engine
(`engine.tools.Toolbox`). This module knows no source.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import TextChoices
from django.utils import timezone

from engine.tools import ToolSpec
from engine.trust import NOTHING_READ, Exposure
from tools.citable import CitablePassages, Passage

_KEY_CHARS: Final = 200


class UntrustedCalls(TextChoices):
    """What becomes of calls that could do harm, once a turn has read what strangers wrote."""

    ASK = "ask", "Ask a person first"
    REFUSE = "refuse", "Refuse"
    ALLOW = "allow", "Allow"


class ToolError(Exception):
    """The call failed in a way the model may read: the text says what, and what to do instead."""


class ArgumentsError(ToolError):
    """The arguments are not what the tool takes."""


@dataclass(frozen=True, slots=True)
class ProducedFile:
    """A file that a call returned. `name` and `mime_type` are a stranger's words."""

    name: str
    mime_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call returned: `text` for the model, not yet cut, and files for the user.

    `passages` are those of the text that an answer may cite, numbered by `ToolContext.citable`.
    """

    text: str
    files: tuple[ProducedFile, ...] = ()
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to a tool's service and its answer, without credentials, for the tool's owner.

    Bodies are cut. `status` is None when no answer came; `fault` then says why, in a few words.
    """

    method: str
    url: str
    request_headers: Mapping[str, str]
    request_body: str
    status: int | None
    response_headers: Mapping[str, str]
    response_body: str
    latency_ms: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The turn that a call belongs to. `call_id` is set for each call.

    `user_id` is None for guests, `chat_id` for stateless turns, `assistant_id` for bare models.
    `question_id` is the message that a chat's turn answers. `library_ids` are those that the turn
    may search. `time_zone` is the user's IANA name. `clock` returns an aware time; tests pass their
    own. `citable` numbers what the turn may cite. `exposure` is what it had read when the call was
    asked for, and `untrusted_calls` what the assistant's owner wants done about it. `exchanges` collects
    the requests that are made, if somebody wants to see them; a call never reads it.
    """

    organization_id: UUID
    user_id: UUID | None = None
    guest_id: str | None = None
    api_key_id: UUID | None = None
    chat_id: UUID | None = None
    assistant_id: UUID | None = None
    turn_id: UUID | None = None
    question_id: UUID | None = None
    library_ids: tuple[UUID, ...] = ()
    call_id: str = ""
    time_zone: str = "UTC"
    clock: Callable[[], datetime] = timezone.now
    citable: CitablePassages = field(default_factory=CitablePassages)
    exposure: Exposure = NOTHING_READ
    untrusted_calls: UntrustedCalls = UntrustedCalls.ASK
    exchanges: list[Exchange] | None = None

    @property
    def must_guard(self) -> bool:
        """Whether strangers may have told the model to make this call, and somebody minds."""
        return self.exposure.is_untrusted and self.untrusted_calls != UntrustedCalls.ALLOW

    @property
    def call_key(self) -> str:
        """Return the call's name for services: at most 200 characters of printable ASCII.

        It is sent as `Idempotency-Key`, so it must be the same when a call is repeated and differ
        between turns, in which models may use the same `call_id`.
        """
        of_turn = f"{self.turn_id}:{self.call_id}" if self.turn_id else self.call_id
        is_plain = of_turn.isascii() and of_turn.isprintable() and len(of_turn) <= _KEY_CHARS
        return of_turn if is_plain else hashlib.sha256(of_turn.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The facts of a turn that decide which built-in tools it is offered."""

    has_library: bool = False
    has_sealed_blocks: bool = False
    disable_web_browsing: bool = False
    disable_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool(ABC):
    """A function that a model may call."""

    spec: ToolSpec
    """Its description, with the source's name; the toolbox renames it."""
    source: str = ""
    """The name of the function's tool; empty for built-in ones."""
    is_idempotent: bool = False
    """Whether calling it twice does no harm."""
    asks_first: bool = False
    """Whether a person must approve each call before it is made."""
    is_harmless: bool = False
    """Whether a stranger who has it called gains nothing: it needs no guard."""
    is_read_only: bool = False
    """Whether its source says that it changes nothing. What it is told still leaves Amber."""
    timeout_seconds: float | None = None
    """The tool's own limit; None, or a longer one, means the installation's."""

    @abstractmethod
    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call the function. `arguments` are parsed but not yet checked.

        Raises ToolError for what the model may read; anything else is logged and hidden from it.
        """
