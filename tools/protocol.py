"""What every tool is to Amber, wherever it comes from, and what a call is told about its turn.

One file per source of tools implements `OfferedTool`; `tools.calling.toolbox` makes of them what the
engine knows (`engine.tools.Toolbox`). Refuses to know any source.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import UUID

from django.utils import timezone

from engine.tools import ToolSpec
from tools.citable import CitablePassages, Passage

_KEY_CHARS: Final = 200


class ToolError(Exception):
    """The call failed in a way the model may read: the text says what, and what to do instead."""


class ArgumentsError(ToolError):
    """The arguments are not what the tool takes."""


@dataclass(frozen=True, slots=True)
class ProducedFile:
    """What a tool made besides text. `name` and `mime_type` are a stranger's words."""

    name: str
    mime_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call returned: `text` for the model, not yet cut, files for the user to keep, and the
    passages of the text that an answer may cite (numbered by `ToolContext.citable`)."""

    text: str
    files: tuple[ProducedFile, ...] = ()
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to a tool's service and its answer, as its owner may see them: no credentials.

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
    """Who asks and where. `call_id` is set for each call; the rest is the turn's.

    `user_id` is None for guests, `chat_id` for stateless turns, `assistant_id` for bare models.
    `question_id` is the message that is answered, of a turn in a chat. `library_ids` are those the
    turn may search. `time_zone` is the user's IANA name. `clock` returns an aware time; tests give
    their own. `citable` numbers what the turn may cite. `exchanges` takes what went over the network,
    when somebody wants to look at it; a call never reads it.
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
    exchanges: list[Exchange] | None = None

    @property
    def call_key(self) -> str:
        """The call's name for services, such as `Idempotency-Key`: printable ASCII, at most 200.

        Models may use a `call_id` again in another turn; the same call made again keeps its key.
        """
        of_turn = f"{self.turn_id}:{self.call_id}" if self.turn_id else self.call_id
        is_plain = of_turn.isascii() and of_turn.isprintable() and len(of_turn) <= _KEY_CHARS
        return of_turn if is_plain else hashlib.sha256(of_turn.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides which built-in tools a turn is offered."""

    has_library: bool = False
    has_sealed_blocks: bool = False
    disable_web_browsing: bool = False
    disable_memory: bool = False


class OfferedTool(Protocol):
    """One function a model may call."""

    @property
    def spec(self) -> ToolSpec:
        """`name` as the source says it; the toolbox makes it fit for models."""
        ...

    @property
    def source(self) -> str:
        """Name of the tool the function belongs to; empty for built-in ones."""
        ...

    @property
    def is_idempotent(self) -> bool:
        """Calling twice does no harm."""
        ...

    @property
    def asks_first(self) -> bool:
        """A person must approve each call before it is made."""
        ...

    @property
    def timeout_seconds(self) -> float | None:
        """None: the installation's limit. Never longer than that."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """What the call returned. `arguments` are parsed but not yet checked.

        Raises ToolError for what the model may read; anything else is logged and hidden from it.
        """
        ...
