"""Encrypt and decrypt a provider's API key, and what the environment said about the provider.

A ciphertext can be decrypted only for the row and the column it was made for. Providers belong to
the platform, so no organization is named. Only `providers.registry` and `providers.services` may
decrypt.
"""

from amber.lib.secrets import decrypt, encrypt
from providers.models import Provider


def encrypt_api_key(provider: Provider, api_key: str) -> None:
    """Set the row's encrypted key, without saving. Empty: the provider needs none."""
    provider.api_key_sealed = _encrypt_column(provider, "api_key", api_key) if api_key else ""


def decrypt_api_key(provider: Provider) -> str:
    """Return the key, empty if the provider needs none. Raises DecryptError, SecretKeyError."""
    return _decrypt_column(provider, "api_key", provider.api_key_sealed)


def encrypt_environment(provider: Provider, said: str) -> None:
    """Set what the environment said, encrypted, without saving."""
    provider.environment_sealed = _encrypt_column(provider, "environment", said)


def decrypt_environment(provider: Provider) -> str:
    """Return what the environment said, empty for a provider made by hand.

    Raises DecryptError, SecretKeyError.
    """
    return _decrypt_column(provider, "environment", provider.environment_sealed)


def _encrypt_column(provider: Provider, column: str, plaintext: str) -> str:
    return encrypt(plaintext, table=_place(column), pk=provider.pk, organization_id=None)


def _decrypt_column(provider: Provider, column: str, encrypted: str) -> str:
    if not encrypted:
        return ""
    return decrypt(encrypted, table=_place(column), pk=provider.pk, organization_id=None)


def _place(column: str) -> str:
    return f"{Provider._meta.db_table}.{column}"
