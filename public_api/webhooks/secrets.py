"""What a webhook's row keeps sealed: the secret it signs with, and the one before.

A sealed text opens only for its row. Refuses to hand a secret to anything but `webhook_delivery`.
"""

from datetime import datetime

from amber.lib.secrets import decrypt, encrypt
from public_api.models import Webhook


def encrypt_secret(webhook: Webhook, secret: str) -> None:
    """Set it, without saving."""
    webhook.secret_sealed = encrypt(
        secret,
        table=_PLACE,
        pk=webhook.pk,
        organization_id=webhook.organization_id,
    )


def secrets_of(webhook: Webhook, *, now: datetime) -> list[str]:
    """Those that sign now, the newest first. Raises DecryptError, SecretKeyError."""
    sealed = [webhook.secret_sealed]
    if webhook.old_secret_until is not None and webhook.old_secret_until > now:
        sealed.append(webhook.old_secret_sealed)
    return [
        decrypt(text, table=_PLACE, pk=webhook.pk, organization_id=webhook.organization_id)
        for text in sealed
    ]


_PLACE = f"{Webhook._meta.db_table}.secret"
