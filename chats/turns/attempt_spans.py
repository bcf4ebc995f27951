"""Trace the attempts at a turn: each is a span in the trace of the question, whichever worker makes it.

The turn's row has the parent (`trace_parent`). An attempt's id is made of the turn's id and its fence, which each
claim increases. So the next attempt can link to the last one, and the sweep can record one whose worker died
before it wrote anything.
"""

import hashlib
from contextlib import AbstractContextManager
from uuid import UUID

from django.utils import timezone

from amber.lib.tracing import names, spans
from chats.models import Turn


def attempt_span(turn: Turn, claimed_ns: int) -> AbstractContextManager[spans.TraceSpan]:
    """Make the block the span of this attempt, which began when the worker set out to claim the turn."""
    beginning = spans.Beginning(
        names.INVOKE_AGENT,
        parent=turn.trace_parent or None,
        attributes=_about(turn),
        at_ns=claimed_ns,
        id=_attempt_id(turn.pk, turn.fence),
        follows=_attempt_parent(turn, turn.fence - 1) if turn.fence > 1 else "",
        shows_content=turn.organization.trace_content,
    )
    return spans.enter(beginning)


def describe_outcome(turn: Turn) -> spans.Attributes:
    """Return what an attempt has come to: the turn as it was last stored."""
    return {
        names.TURN_STATUS: str(turn.status),
        names.STEPS: turn.step,
        names.INPUT_TOKENS: turn.usage.get("prompt_tokens"),
        names.OUTPUT_TOKENS: turn.usage.get("completion_tokens"),
        names.FINISH_REASONS: [turn.finish_reason] if turn.finish_reason else None,
        names.ERROR_TYPE: (turn.error or {}).get("code"),
    }


def record_lost(turn: Turn) -> None:
    """Record the attempt of a worker that died: it can no longer do so. `turn` is as it left it."""
    if not spans.is_on():
        return
    began = turn.started_at if turn.attempt == 1 else turn.updated_at
    began = began or timezone.now()
    beginning = spans.Beginning(
        names.INVOKE_AGENT,
        parent=turn.trace_parent or None,
        attributes={**_about(turn), names.TURN_STATUS: "lost"},
        at_ns=round(began.timestamp() * 1e9),
        id=_attempt_id(turn.pk, turn.fence),
    )
    spans.record(beginning, "worker_lost")


def _about(turn: Turn) -> spans.Attributes:
    shown = turn.assistant if turn.assistant and turn.organization.trace_content else None
    queued = timezone.now() - turn.created_at if turn.attempt == 1 else None
    return {
        names.OPERATION: "invoke_agent",
        names.ORGANIZATION_ID: str(turn.organization_id),
        names.TURN_ID: str(turn.pk),
        names.CONVERSATION_ID: str(turn.chat_id) if turn.chat_id else None,
        names.AGENT_ID: str(turn.assistant_id) if turn.assistant_id else None,
        names.AGENT_NAME: shown.name if shown else None,
        names.ATTEMPT: turn.attempt,
        names.QUEUED_SECONDS: round(queued.total_seconds(), 3) if queued else None,
    }


def _attempt_parent(turn: Turn, fence: int) -> str:
    """Return the `trace_parent` of an attempt; empty if the turn is in no trace."""
    parts = turn.trace_parent.split("-")
    if len(parts) != 4:
        return ""
    return f"{parts[0]}-{parts[1]}-{_attempt_id(turn.pk, fence):016x}-{parts[3]}"


def _attempt_id(turn_id: UUID, fence: int) -> int:
    digest = hashlib.blake2b(turn_id.bytes + fence.to_bytes(8, "big"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") or 1
