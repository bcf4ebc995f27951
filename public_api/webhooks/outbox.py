"""Create deliveries to webhooks from turns of API keys, in the transaction that ends the turn.

Turns without a key, and those of organizations without webhooks, cost nothing: whether an
organization has some is read once in KNOWN_SECONDS by each process.
"""

import time
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from amber.lib.ids import new_id
from chats.models import Turn
from engine.events import TurnStatus
from public_api.models import WEBHOOK_EVENTS, Webhook, WebhookDelivery
from public_api.queue import enqueue_deliveries
from public_api.responses.names import RequestEcho, response_id

KNOWN_SECONDS: Final = 5.0
"""How long an organization's first webhook may get nothing."""

_KEEP_SQL: Final = "SELECT id FROM public_api_webhook WHERE id = ANY(%s) FOR KEY SHARE"

_known: dict[UUID, tuple[float, bool]] = {}
"""When an organization was asked for, and whether it had webhooks then."""


def note_turn(turn: Turn) -> None:
    """Add the turn's deliveries. Call it in a transaction. One query; two more, of which one writes,
    if there are any."""
    if turn.api_key_id is None or not _has_webhooks(turn.organization_id):
        return
    event = f"turn.{turn.status}"
    if event not in dict(WEBHOOK_EVENTS):
        return
    webhooks = _keep(Webhook.objects.hearing(turn, event))
    if not webhooks:
        return
    WebhookDelivery.objects.bulk_create(_delivery(webhook, turn, event) for webhook in webhooks)
    transaction.on_commit(enqueue_deliveries)


def _keep(webhooks: Iterable[Webhook]) -> list[Webhook]:
    """Return those that are still there, and keep them until the commit: a delivery for one that is
    deleted meanwhile would undo the end of the turn."""
    found = {webhook.pk: webhook for webhook in webhooks}
    if not found:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_SQL, [list(found)])
        return [found[pk] for (pk,) in cursor.fetchall()]


def forget_known() -> None:
    """Let this process read again which organizations have webhooks."""
    _known.clear()


def _has_webhooks(organization_id: UUID) -> bool:
    """Whether the organization has webhooks. Its own question: a turn sees nobody else's."""
    now = time.monotonic()
    known = _known.get(organization_id)
    if known is None or now - known[0] > KNOWN_SECONDS:
        mine = Webhook.objects.filter(organization_id=organization_id, disabled_at__isnull=True)
        known = _known[organization_id] = (now, mine.exists())
    return known[1]


def _delivery(webhook: Webhook, turn: Turn, event: str) -> WebhookDelivery:
    now = timezone.now()
    return WebhookDelivery(
        organization_id=turn.organization_id,
        webhook=webhook,
        turn_id=turn.pk,
        event=event,
        due_at=Now(),
        payload={
            "id": str(new_id()),
            "type": event,
            "created_at": now.isoformat(),
            "organization_id": str(turn.organization_id),
            "turn": _describe_turn(turn),
        },
    )


def _describe_turn(turn: Turn) -> dict[str, Any]:
    """Describe the turn without anybody's texts: waiting calls have names, but no arguments."""
    ids = ("chat_id", "assistant_id", "api_key_id")
    times = ("created_at", "started_at", "ended_at")
    waits = turn.status == TurnStatus.WAITING
    asked = RequestEcho.of(turn)
    return {
        "id": str(turn.pk),
        "response_id": response_id(turn) if asked and asked.is_stored else None,
        **{name: _text(getattr(turn, name)) for name in ids},
        "guest_id": turn.guest_id,
        "status": str(turn.status),
        "finish_reason": turn.finish_reason or None,
        "error": turn.error,
        "usage": turn.usage,
        "waiting_calls": [
            {"call_id": call["call_id"], "name": call["name"]}
            for call in (turn.waiting_calls if waits else ())
        ],
        **{name: _time(getattr(turn, name)) for name in times},
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat()
