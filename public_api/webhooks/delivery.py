"""Send what is due to webhooks, and try again for a day.

A delivery is a row with a lease and a fence: a worker that is woken takes what is due, a few for
each webhook so that a slow one holds up no other. Each attempt checks again whether the receiver
may know: nobody who has left meanwhile is told anything. Everything goes through the guarded
client, without redirects: a POST that becomes a GET would have delivered nothing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from amber.lib.database.batches import delete_in_batches
from amber.lib.database.connections import release_connections
from amber.lib.database.lease import Fenced
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.egress import FetchLimits, fetch
from amber.lib.errors import AmberError
from amber.lib.json_text import numbers
from amber.lib.secrets import DecryptError, cell_of, decrypt
from amber.lib.tracing import names, spans
from amber.lib.workers.leases import Runs, sweep_expired
from amber.lib.workers.time_slice import TimeSlice
from amber.lib.workers.worker import this_worker
from chats.messages.turn_messages import messages_of_turn
from chats.models import Turn
from public_api.models import (
    GIVE_UP_AFTER,
    GIVE_UP_FAILURES,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
)
from public_api.webhooks.signing import HEADER, signature

logger = structlog.get_logger(__name__)

RETRY_SECONDS: Final = (10, 60, 300, 1_800, 7_200, 21_600, 54_000)
"""The pauses between attempts: just under 24 hours in all."""

LIMITS: Final = FetchLimits(
    connect_seconds=5, total_seconds=15, max_bytes=1_000_000, max_redirects=0
)
LEASE_SECONDS: Final = 60
running_deliveries: Final = Runs(WebhookDelivery, lease_seconds=LEASE_SECONDS)
MAX_OUTPUT_BYTES: Final = 1_000_000
GONE: Final = 410
_BATCH: Final = 16
_PER_WEBHOOK: Final = 4
# A batch is chosen from so many, or one webhook's deliveries would hide all others'.
_LOOKED_AT: Final = 200


@dataclass(frozen=True, slots=True)
class _WebhookMessage:
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    trace_parent: str = ""


@dataclass(frozen=True, slots=True)
class _DeliveryOutcome:
    """The result of an attempt. `error` is empty for what was delivered, `latency_ms` 0 for what
    was not sent. `is_withheld`: it never will be, and that is not the address's fault."""

    error: str
    http_status: int | None = None
    latency_ms: int = 0
    is_withheld: bool = False


def deliver_due() -> None:
    """Send what is due, for a limited time: other work of the queue waits behind it."""
    with across_tenants():
        _deliver_due()


def _deliver_due() -> None:
    sweep_expired("deliver_webhooks", WebhookDelivery, _give_back, lease_seconds=LEASE_SECONDS)
    time_slice = TimeSlice()
    while not time_slice.is_over() and (claimed := _claim_due()):
        with running_deliveries.listing(claimed):
            messages = []
            for delivery in claimed:
                with as_tenant(_tenant_of(delivery)):
                    messages.append(_message(delivery))
            release_connections()
            outcomes = asyncio.run(_send_all(messages))
            for delivery, outcome in zip(claimed, outcomes, strict=True):
                with as_tenant(_tenant_of(delivery)):
                    _settle(delivery, outcome)


def _tenant_of(delivery: WebhookDelivery) -> Tenant:
    """Return the tenant whose rows may be told and written: those of the delivery's own."""
    return Tenant(delivery.organization_id, is_whole=True)


def forget_deliveries() -> None:
    """Delete the log after AMBER_WEBHOOK_LOG_DAYS, in batches."""
    least = Now() - timedelta(days=settings.AMBER_WEBHOOK_LOG_DAYS)
    old = WebhookDelivery.objects.filter(created_at__lt=least)
    delete_in_batches(old, at_most=1_000)


# -- Taking ---------------------------------------------------------------------------------------


def _give_back(delivery_id: UUID) -> None:
    """Queue a delivery whose worker died. Receivers recognise a repeated one by its id."""
    delivery = WebhookDelivery.objects.lock_expired(delivery_id)
    if delivery is not None:
        WebhookDelivery.objects.give_back(delivery)


def _claim_due() -> list[WebhookDelivery]:
    due = WebhookDelivery.objects.filter(
        status=DeliveryStatus.QUEUED, due_at__lte=Now(), webhook__disabled_at__isnull=True
    )
    found = due.order_by("due_at").values_list("pk", "webhook_id")[:_LOOKED_AT]
    name = this_worker().name
    claims = (
        WebhookDelivery.objects.select_related("webhook").claim(
            pk, worker=name, lease_seconds=LEASE_SECONDS
        )
        for pk in _fair(list(found))
    )
    return [delivery for delivery in claims if delivery is not None]


def _fair(found: Sequence[tuple[UUID, UUID]]) -> list[UUID]:
    taken: Counter[UUID] = Counter()
    chosen: list[UUID] = []
    for pk, webhook_id in found:
        if taken[webhook_id] < _PER_WEBHOOK and len(chosen) < _BATCH:
            taken[webhook_id] += 1
            chosen.append(pk)
    return chosen


# -- Sending --------------------------------------------------------------------------------------


def _message(delivery: WebhookDelivery) -> _WebhookMessage | _DeliveryOutcome:
    """Return the message; an outcome if it may not be sent, or cannot be signed."""
    webhook, now = delivery.webhook, timezone.now()
    if reason := _reason_to_withhold(delivery):
        return _DeliveryOutcome(reason, is_withheld=True)
    try:
        keys = _secrets_of(webhook, now)
    except DecryptError:
        return _DeliveryOutcome("The webhook's secret cannot be decrypted. Rotate it.")
    body = numbers.write({**delivery.payload, **_output(delivery)})
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Amber-Webhooks",
        "Amber-Event": delivery.event,
        "Amber-Delivery": str(delivery.pk),
        HEADER: signature(keys, body, at=int(now.timestamp())),
    }
    return _WebhookMessage(webhook.url, headers, body, _trace_parent(delivery))


def _secrets_of(webhook: Webhook, now: datetime) -> list[str]:
    """Return the secrets that sign now, the newest first. Raises DecryptError, SecretKeyError."""
    encrypted = [webhook.secret_sealed]
    if webhook.old_secret_until is not None and webhook.old_secret_until > now:
        encrypted.append(webhook.old_secret_sealed)
    return [decrypt(text, **cell_of(webhook, "secret")) for text in encrypted]


def _trace_parent(delivery: WebhookDelivery) -> str:
    """Return the span that asked: its trace goes on with what is told of the answer. One query, if
    traces are on."""
    if not spans.is_on():
        return ""
    turns = Turn.objects.filter(pk=delivery.turn_id)
    return turns.values_list("trace_parent", flat=True).first() or ""


def _reason_to_withhold(delivery: WebhookDelivery) -> str:
    """Return why not to send it; empty while the receiver may know of this turn. Two queries."""
    turn = Turn.objects.in_sight().filter(pk=delivery.turn_id).first()
    if turn is None:
        return "The turn was deleted."
    if not Webhook.objects.allowed_to_see(turn).filter(pk=delivery.webhook_id).exists():
        return "The webhook's user no longer has access to this turn."
    return ""


def _output(delivery: WebhookDelivery) -> dict[str, Any]:
    """Return what the turn wrote, if the webhook wants it; None if it is erased, or too long."""
    if not delivery.webhook.include_output:
        return {}
    turn = Turn.objects.filter(pk=delivery.turn_id).first()
    messages = messages_of_turn(turn) if turn is not None else None
    if messages and len(numbers.write(messages)) > MAX_OUTPUT_BYTES:
        messages = None
    return {"output": messages or None}


async def _send_all(
    messages: Sequence[_WebhookMessage | _DeliveryOutcome],
) -> list[_DeliveryOutcome]:
    return await asyncio.gather(*(_send(message) for message in messages))


async def _send(message: _WebhookMessage | _DeliveryOutcome) -> _DeliveryOutcome:
    if isinstance(message, _DeliveryOutcome):
        return message
    beginning = spans.Beginning(
        names.DELIVER_WEBHOOK, "client", message.trace_parent or spans.current()
    )
    with spans.enter(beginning) as span:
        outcome = await _post(message)
        span.set({names.HTTP_METHOD: "POST", names.HTTP_STATUS: outcome.http_status})
        if outcome.error:
            span.set({names.ERROR_TYPE: str(outcome.http_status or "unreachable")})
        return outcome


async def _post(message: _WebhookMessage) -> _DeliveryOutcome:
    began = time.monotonic()
    headers = {**message.headers, **spans.headers_for("webhooks")}
    try:
        response = await fetch(
            "POST", message.url, headers=headers, content=message.body, limits=LIMITS
        )
    except AmberError as error:
        return _DeliveryOutcome(error.message, None, _ms_since(began))
    said = "" if response.is_success else f"The address answered with {response.status}."
    return _DeliveryOutcome(said, response.status, _ms_since(began))


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


# -- Noting ---------------------------------------------------------------------------------------


@transaction.atomic
def _settle(delivery: WebhookDelivery, outcome: _DeliveryOutcome) -> None:
    try:
        WebhookDelivery.objects.holding(delivery.pk, delivery.fence, "status")
    except Fenced:
        return  # another worker took over: it tells how it went
    if not outcome.is_withheld:
        _count(delivery.webhook_id, outcome)
    log = {
        "http_status": outcome.http_status,
        "latency_ms": outcome.latency_ms,
        "error": outcome.error,
    }
    if not outcome.error:
        WebhookDelivery.objects.end(delivery, DeliveryStatus.DELIVERED, **log)
    elif (
        outcome.is_withheld
        or delivery.attempt > len(RETRY_SECONDS)
        or not _is_enabled(delivery.webhook_id)
    ):
        WebhookDelivery.objects.end(delivery, DeliveryStatus.FAILED, **log)
    else:
        wait = timedelta(seconds=RETRY_SECONDS[delivery.attempt - 1])
        WebhookDelivery.objects.give_back(delivery, due_at=Now() + wait, **log)


def _is_enabled(webhook_id: UUID) -> bool:
    return Webhook.objects.filter(pk=webhook_id, disabled_at__isnull=True).exists()


def _count(webhook_id: UUID, outcome: _DeliveryOutcome) -> None:
    """Count failures in a row, and disable a webhook after too many."""
    row = Webhook.objects.filter(pk=webhook_id)
    if not outcome.error:
        row.filter(failures__gt=0).update(failures=0, failing_since=None)
        return
    row.update(failures=F("failures") + 1, failing_since=Coalesce("failing_since", Now()))
    if outcome.http_status == GONE:
        _disable(webhook_id, "The address answered that it is gone (410).")
        return
    failing = row.filter(
        failures__gte=GIVE_UP_FAILURES, failing_since__lte=Now() - GIVE_UP_AFTER
    ).values_list("failures", flat=True)
    for failures in failing:
        _disable(webhook_id, f"{failures} attempts in a row failed. The last one: {outcome.error}")


def _disable(webhook_id: UUID, reason: str) -> None:
    """Disable the webhook. What still waits is not sent, but can be sent again later."""
    now = timezone.now()
    live = Webhook.objects.filter(pk=webhook_id, disabled_at__isnull=True)
    if live.update(disabled_at=now, disabled_reason=reason[:300]):
        logger.warning("webhook_disabled", webhook_id=str(webhook_id))
        waiting = WebhookDelivery.objects.filter(
            webhook_id=webhook_id, status=DeliveryStatus.QUEUED
        )
        waiting.update(
            status=DeliveryStatus.FAILED, error="The webhook was disabled.", ended_at=now
        )
