"""Encrypt and decrypt a webhook's secrets: the one it signs with, and the one before.

An encrypted text can be decrypted only for its row. Only `public_api.webhooks.delivery` may ask for
a secret.
"""

from datetime import datetime

from amber.lib.secrets import decrypt, encrypt
from public_api.models import Webhook


def encrypt_secret(webhook: Webhook, secret: str) -> None:
    """Set the encrypted secret on the row, without saving it."""
    webhook.secret_sealed = encrypt(
        secret,
        table=_PLACE,
        pk=webhook.pk,
        organization_id=webhook.organization_id,
    )


def secrets_of(webhook: Webhook, *, now: datetime) -> list[str]:
    """Return the secrets that sign now, the newest first. Raises DecryptError, SecretKeyError."""
    encrypted = [webhook.secret_sealed]
    if webhook.old_secret_until is not None and webhook.old_secret_until > now:
        encrypted.append(webhook.old_secret_sealed)
    return [
        decrypt(text, table=_PLACE, pk=webhook.pk, organization_id=webhook.organization_id)
        for text in encrypted
    ]


_PLACE = f"{Webhook._meta.db_table}.secret"
