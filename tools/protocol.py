"""What every tool is to Amber, wherever it comes from, and what a call is told about its turn.

One file per source of tools implements `OfferedTool`; `tools.toolbox` makes of them what the
engine knows (`engine.tools.Toolbox`). Refuses to know any source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.utils import timezone

from engine.tools import ToolSpec


class ToolError(Exception):
    """The call failed in a way the model may read: the text says what, and what to do instead."""


class ArgumentsError(ToolError):
    """The arguments are not what the tool takes."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who asks and where. `call_id` is set for each call; the rest is the turn's.

    `user_id` is None for guests, `chat_id` for stateless turns, `assistant_id` for bare models.
    `time_zone` is the user's IANA name. `clock` returns an aware time; tests give their own.
    """

    organization_id: UUID
    user_id: UUID | None = None
    guest_id: str | None = None
    chat_id: UUID | None = None
    assistant_id: UUID | None = None
    turn_id: UUID | None = None
    call_id: str = ""
    time_zone: str = "UTC"
    clock: Callable[[], datetime] = timezone.now


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
    def timeout_seconds(self) -> float | None:
        """None: the installation's limit. Never longer than that."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """What the model shall read, not yet cut. `arguments` are parsed but not yet checked.

        Raises ToolError for what the model may read; anything else is logged and hidden from it.
        """
        ...
