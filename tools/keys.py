"""Encrypt and decrypt the key that a tool's service wants.

A ciphertext can be decrypted only for the tool and the organization it was made for. Only
`tools.connections.connected` may decrypt.
"""

from amber.lib.secrets import decrypt, encrypt
from tools.models import Tool

_PLACE = f"{Tool._meta.db_table}.api_key"


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
