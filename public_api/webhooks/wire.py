"""Write webhooks and their log in their wire form, without secrets."""

from typing import Any

from public_api.models import Webhook, WebhookDelivery


def webhook_wire(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": str(webhook.pk),
        "name": webhook.name,
        "url": webhook.url,
        "events": list(webhook.events),
        "include_output": webhook.include_output,
        "whole_organization": webhook.whole_organization,
        "user_id": str(webhook.user_id),
        "enabled": webhook.is_enabled,
        "disabled_at": _time(webhook.disabled_at),
        "disabled_reason": webhook.disabled_reason or None,
        "failures": webhook.failures,
        "failing_since": _time(webhook.failing_since),
        "old_secret_until": _time(webhook.old_secret_until),
        "created_at": _time(webhook.created_at),
        "updated_at": _time(webhook.updated_at),
    }


def delivery_wire(delivery: WebhookDelivery) -> dict[str, Any]:
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
        "next_attempt_at": _time(delivery.due_at) if delivery.status == "queued" else None,
        "created_at": _time(delivery.created_at),
        "ended_at": _time(delivery.ended_at),
    }


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
