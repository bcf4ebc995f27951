"""Change webhooks. Secrets leave once, as the second value returned."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.allowance import refuse_beyond
from accounts.tenancy.idempotency import settle
from amber.lib.database.rows import delete_row
from amber.lib.egress import installation_policy
from amber.lib.errors import AmberError, Conflict, Forbidden, Invalid, Missing
from amber.lib.ids import new_id
from amber.lib.secrets import encrypt_column
from public_api.models import DeliveryStatus, Webhook, WebhookDelivery
from public_api.queue import enqueue_deliveries
from public_api.webhooks.outbox import forget_known
from public_api.webhooks.signing import new_secret
from public_api.webhooks.wire import webhook_wire

MAX_WEBHOOKS: Final = 20


@transaction.atomic(durable=True)
def create_webhook(
    principal: Principal, *, fields: Mapping[str, Any], claim: IdempotencyRecord | None = None
) -> tuple[Webhook, str]:
    """Return a webhook and its secret.

    Raises Invalid (Amber may not call the address), Forbidden (only admins may hear of the whole
    organization), Conflict (too many).
    """
    said = f"You have reached the limit of {MAX_WEBHOOKS} webhooks."
    refuse_beyond(Webhook, principal, MAX_WEBHOOKS, said=said)
    webhook = Webhook(
        id=new_id(), organization_id=principal.organization_id, user=principal.user, **fields
    )
    _check(webhook, principal)
    secret = new_secret()
    encrypt_column(webhook, "secret", secret)
    webhook.save(force_insert=True)
    transaction.on_commit(forget_known)
    settle(claim, status=201, answer={**webhook_wire(webhook), "secret": None})
    return webhook, secret


@transaction.atomic(durable=True)
def edit_webhook(webhook: Webhook, principal: Principal, *, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook. `enabled` restarts a disabled one. Raises as `create_webhook`."""
    webhook = _lock_webhook(webhook)
    rest = dict(changes)
    enabled = rest.pop("enabled", None)
    for name, value in rest.items():
        setattr(webhook, name, value)
    _check(webhook, principal)
    if enabled is False and webhook.is_enabled:
        webhook.disabled_at, webhook.disabled_reason = timezone.now(), "Switched off."
    elif enabled and not webhook.is_enabled:
        webhook.disabled_at, webhook.disabled_reason = None, ""
        webhook.failures, webhook.failing_since = 0, None
    webhook.save()
    transaction.on_commit(forget_known)
    return webhook


@transaction.atomic(durable=True)
def delete_webhook(webhook: Webhook) -> None:
    """Delete the webhook with its log."""
    delete_row(webhook)


@transaction.atomic(durable=True)
def rotate_secret(webhook: Webhook, *, overlap: timedelta) -> tuple[Webhook, str]:
    """Return a new secret; the old one also signs for `overlap` longer."""
    webhook = _lock_webhook(webhook)
    webhook.old_secret_sealed = webhook.secret_sealed
    webhook.old_secret_until = timezone.now() + overlap
    secret = new_secret()
    encrypt_column(webhook, "secret", secret)
    webhook.save()
    return webhook, secret


@transaction.atomic(durable=True)
def deliver_again(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send the same event again, as a delivery of its own.

    Raises Conflict (the webhook is disabled, or the delivery is still on its way).
    """
    if not delivery.webhook.is_enabled:
        raise Conflict("The webhook is disabled.")
    if delivery.status in (DeliveryStatus.QUEUED, DeliveryStatus.RUNNING):
        raise Conflict("This delivery is still on its way.")
    again = WebhookDelivery.objects.create(
        organization_id=delivery.organization_id,
        webhook_id=delivery.webhook_id,
        turn_id=delivery.turn_id,
        event=delivery.event,
        payload=delivery.payload,
        due_at=Now(),
    )
    again.refresh_from_db(fields=["due_at"])
    transaction.on_commit(enqueue_deliveries)
    return again


# -- Private: inside the verb's transaction
# ----------------------------------------------------------


def _lock_webhook(webhook: Webhook) -> Webhook:
    locked: Webhook | None = (
        Webhook.objects.select_for_update(no_key=True).filter(pk=webhook.pk).first()
    )
    if locked is None:
        raise Missing
    return locked


def _check(webhook: Webhook, principal: Principal) -> None:
    """Raise for an address or a scope that is not allowed. A name is resolved only when sending."""
    try:
        installation_policy().check_url(webhook.url)
    except AmberError as error:
        error.fields = {"url": [error.message]}
        raise
    if not webhook.whole_organization:
        return
    if not principal.is_admin:
        raise Forbidden("Only owners and admins can be notified of everybody's turns.")
    if webhook.include_output:
        said = "A webhook of the whole organization cannot include what members wrote."
        raise Invalid(said, fields={"include_output": [said]})
