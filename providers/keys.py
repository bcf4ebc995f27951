"""What a provider's row keeps sealed: its API key, and what the environment said about it.

A sealed text opens only for the row and the column it was sealed for. Providers belong to the
platform, so no organization is named. Refuses to return an unsealed key to anything but
`providers.registry` and `providers.services`.
"""

from amber.lib.secrets import seal, unseal
from providers.models import Provider


def seal_api_key(provider: Provider, api_key: str) -> None:
    """Set the row's sealed key, without saving. Empty: the provider wants none."""
    provider.api_key_sealed = _sealed(provider, "api_key", api_key) if api_key else ""


def unseal_api_key(provider: Provider) -> str:
    """Empty when the provider wants none. Raises UnsealError, SecretKeyError."""
    return _unsealed(provider, "api_key", provider.api_key_sealed)


def seal_environment(provider: Provider, said: str) -> None:
    provider.environment_sealed = _sealed(provider, "environment", said)


def unseal_environment(provider: Provider) -> str:
    """Empty for a provider made by hand. Raises UnsealError, SecretKeyError."""
    return _unsealed(provider, "environment", provider.environment_sealed)


def _sealed(provider: Provider, column: str, plaintext: str) -> str:
    return seal(plaintext, table=_place(column), pk=provider.pk, organization_id=None)


def _unsealed(provider: Provider, column: str, sealed: str) -> str:
    if not sealed:
        return ""
    return unseal(sealed, table=_place(column), pk=provider.pk, organization_id=None)


def _place(column: str) -> str:
    return f"{Provider._meta.db_table}.{column}"
