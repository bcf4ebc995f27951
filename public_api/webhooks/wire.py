"""Write webhooks and their log in their wire form, without secrets."""

from typing import Annotated, TypedDict

from amber.lib.wire_fields import Id, Time, write_time
from public_api.models import WEBHOOK_EVENTS, DeliveryStatus, Webhook, WebhookDelivery


class WebhookWire(TypedDict):
    id: Id
    name: str
    url: str
    events: list[Annotated[str, WEBHOOK_EVENTS]]
    include_output: bool
    whole_organization: bool
    user_id: Id
    enabled: bool
    disabled_at: Time | None
    disabled_reason: str | None
    failures: Annotated[int, "The number of attempts in a row that failed."]
    failing_since: Time | None
    old_secret_until: Time | None
    created_at: Time
    updated_at: Time


class IssuedWebhookWire(WebhookWire):
    """A new webhook, with its secret: no later answer shows it."""

    secret: str | None


class DeliveryWire(TypedDict):
    id: Id
    event_id: Annotated[Id, "The `id` of the event; redeliveries share it."]
    event: Annotated[str, WEBHOOK_EVENTS]
    turn_id: Id
    status: Annotated[str, DeliveryStatus]
    attempts: int
    http_status: int | None
    latency_ms: int | None
    error: str | None
    next_attempt_at: Time | None
    created_at: Time
    ended_at: Time | None


def webhook_wire(webhook: Webhook) -> WebhookWire:
    return {
        "id": str(webhook.pk),
        "name": webhook.name,
        "url": webhook.url,
        "events": list(webhook.events),
        "include_output": webhook.include_output,
        "whole_organization": webhook.whole_organization,
        "user_id": str(webhook.user_id),
        "enabled": webhook.is_enabled,
        "disabled_at": write_time(webhook.disabled_at),
        "disabled_reason": webhook.disabled_reason or None,
        "failures": webhook.failures,
        "failing_since": write_time(webhook.failing_since),
        "old_secret_until": write_time(webhook.old_secret_until),
        "created_at": write_time(webhook.created_at),
        "updated_at": write_time(webhook.updated_at),
    }


def delivery_wire(delivery: WebhookDelivery) -> DeliveryWire:
    return {
        "id": str(delivery.pk),
        "event_id": delivery.payload["id"],
        "event": delivery.event,
        "turn_id": str(delivery.turn_id),
        "status": delivery.status,
        "attempts": delivery.attempt,
        "http_status": delivery.http_status,
        "latency_ms": delivery.latency_ms,
        "error": delivery.error or None,
        "next_attempt_at": write_time(delivery.due_at) if delivery.status == "queued" else None,
        "created_at": write_time(delivery.created_at),
        "ended_at": write_time(delivery.ended_at),
    }
