"""What a provider's row keeps sealed: its API key, and what the environment said about it.

A sealed text opens only for the row and the column it was sealed for. Providers belong to the
platform, so no organization is named. Refuses to return an unsealed key to anything but
`providers.registry` and `providers.services`.
"""

from amber.lib.secrets import decrypt, encrypt
from providers.models import Provider


def encrypt_api_key(provider: Provider, api_key: str) -> None:
    """Set the row's sealed key, without saving. Empty: the provider wants none."""
    provider.api_key_sealed = _encrypt_column(provider, "api_key", api_key) if api_key else ""


def decrypt_api_key(provider: Provider) -> str:
    """Empty when the provider wants none. Raises DecryptError, SecretKeyError."""
    return _decrypt_column(provider, "api_key", provider.api_key_sealed)


def encrypt_environment(provider: Provider, said: str) -> None:
    provider.environment_sealed = _encrypt_column(provider, "environment", said)


def decrypt_environment(provider: Provider) -> str:
    """Empty for a provider made by hand. Raises DecryptError, SecretKeyError."""
    return _decrypt_column(provider, "environment", provider.environment_sealed)


def _encrypt_column(provider: Provider, column: str, plaintext: str) -> str:
    return encrypt(plaintext, table=_place(column), pk=provider.pk, organization_id=None)


def _decrypt_column(provider: Provider, column: str, sealed: str) -> str:
    if not sealed:
        return ""
    return decrypt(sealed, table=_place(column), pk=provider.pk, organization_id=None)


def _place(column: str) -> str:
    return f"{Provider._meta.db_table}.{column}"
