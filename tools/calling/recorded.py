"""Check the arguments of each call of a stored tool, time the call and log it.

The log (`ToolCallRecord`) says how a call went and how long it took, never what was said. If it
cannot be written, the call still succeeds. Arguments that do not fit the schema are not sent.
"""

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error

from amber.lib.database.connections import in_thread
from tools.calling.arguments import check_arguments
from tools.models import CallOutcome, ToolCallRecord
from tools.outgoing.requests import ServiceError
from tools.protocol import ArgumentsError, OfferedTool, ToolContext, ToolError, ToolOutput

logger = structlog.get_logger(__name__)

EVERY_FUNCTION: Final = "*"
"""In `options["ask_first"]` and `options["trusted"]`, stands for all of the tool's functions, present and future."""

OWNER_OPTIONS: Final = ("ask_first", "trusted")
"""Options of every kind of tool, by which its owner says how its functions are called."""

_DEADLINE_SLACK_SECONDS: Final = 0.05
"""The toolbox sets its deadline a moment before this module starts to count."""

_DETAIL_CHARS: Final = 1_000
_ID_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class RecordedTool(OfferedTool):
    """A function of a stored tool, which wraps the one of its source.

    `is_harmless` is the word of the tool's owner (`options["trusted"]`).
    """

    inner: OfferedTool
    tool_id: UUID

    @classmethod
    def of(
        cls, inner: OfferedTool, tool_id: UUID, *, asks_first: bool, is_harmless: bool = False
    ) -> Self:
        return cls(
            inner=inner,
            tool_id=tool_id,
            spec=inner.spec,
            source=inner.source,
            is_idempotent=inner.is_idempotent,
            asks_first=asks_first,
            is_harmless=is_harmless,
            is_read_only=inner.is_read_only,
            timeout_seconds=inner.timeout_seconds,
        )

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Make the call and log it. Raises ToolError, and what the source raises."""
        ending = _Ending(started=time.monotonic())
        try:
            await asyncio.to_thread(check_arguments, arguments, self.spec.parameters)
            output = await self.inner.call(arguments, context)
            ending.set(CallOutcome.OK, "")
            return output
        except ArgumentsError as error:
            ending.set(CallOutcome.REFUSED, str(error))
            raise
        except ToolError as error:
            ending.set(CallOutcome.FAILED, getattr(error, "detail", str(error)))
            ending.http_status = error.status if isinstance(error, ServiceError) else None
            raise
        except asyncio.CancelledError:
            limit_seconds = limit_of(self)
            if ending.seconds + _DEADLINE_SLACK_SECONDS >= limit_seconds:
                ending.set(CallOutcome.TIMEOUT, f"No answer within {limit_seconds:g} seconds.")
            else:
                ending.set(CallOutcome.FAILED, "The turn was stopped before an answer came.")
            raise
        finally:
            await self._record(ending, context)

    async def record_declined(self, context: ToolContext) -> None:
        """Log a call that a person declined and that is therefore not made."""
        ending = _Ending(started=time.monotonic())
        ending.set(CallOutcome.DECLINED, "The person who asked declined it; it was not made.")
        await self._record(ending, context)

    async def _record(self, ending: "_Ending", context: ToolContext) -> None:
        row = ToolCallRecord(
            organization_id=context.organization_id,
            tool_id=self.tool_id,
            user_id=context.user_id,
            assistant_id=context.assistant_id,
            turn_id=context.turn_id,
            function=self.spec.name[:_ID_CHARS],
            call_id=context.call_id[:_ID_CHARS],
            outcome=ending.outcome,
            detail=ending.detail[:_DETAIL_CHARS],
            http_status=ending.http_status,
            latency_ms=round(ending.seconds * 1_000),
            is_test=context.turn_id is None,
        )
        try:
            await in_thread(row.save, force_insert=True)
        except Error as error:  # Postgres is away, or the tool was deleted meanwhile
            logger.warning("tool_call_not_recorded", reason=type(error).__name__)


@dataclass(slots=True)
class _Ending:
    """How a call ended; it counts as failed until `set` says otherwise."""

    started: float
    outcome: CallOutcome = CallOutcome.FAILED
    detail: str = field(default="The call failed unexpectedly. The reason is in Amber's log.")
    http_status: int | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def set(self, outcome: CallOutcome, detail: str) -> None:
        self.outcome, self.detail = outcome, detail.replace("\0", "")


def limit_of(tool: OfferedTool) -> float:
    """Return the time that one call may take, in seconds."""
    return min(tool.timeout_seconds or math.inf, settings.AMBER_TOOL_TIMEOUT_SECONDS)
