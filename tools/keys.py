"""Encrypt and decrypt the key that a tool's service wants, and the tokens it gave.

A ciphertext can be decrypted only for the tool and the organization it was made for. Only
`tools.connections` may decrypt.
"""

from amber.lib.secrets import decrypt, encrypt
from tools.models import Tool

_PLACE = f"{Tool._meta.db_table}.api_key"
_PLACE_OF_TOKENS = f"{Tool._meta.db_table}.oauth"


def encrypt_api_key(tool: Tool, api_key: str) -> None:
    """Set the row's encrypted key, without saving. Empty: the service needs none."""
    tool.api_key_sealed = (
        encrypt(api_key, table=_PLACE, pk=tool.pk, organization_id=tool.organization_id)
        if api_key
        else ""
    )


def decrypt_api_key(tool: Tool) -> str:
    """Return the key, empty if the service needs none. Raises DecryptError, SecretKeyError."""
    if not tool.api_key_sealed:
        return ""
    return decrypt(
        tool.api_key_sealed, table=_PLACE, pk=tool.pk, organization_id=tool.organization_id
    )


def encrypt_tokens(tool: Tool, tokens: str) -> None:
    """Set the row's encrypted tokens, without saving. Empty: it is not connected."""
    tool.oauth_sealed = (
        encrypt(tokens, table=_PLACE_OF_TOKENS, pk=tool.pk, organization_id=tool.organization_id)
        if tokens
        else ""
    )


def decrypt_tokens(tool: Tool) -> str:
    """Return the tokens. Raises DecryptError, SecretKeyError."""
    return decrypt(
        tool.oauth_sealed,
        table=_PLACE_OF_TOKENS,
        pk=tool.pk,
        organization_id=tool.organization_id,
    )
