"""What a tool's row keeps sealed: the key its service wants.

A sealed text opens only for the tool and the organization it was sealed for. Refuses to return an
unsealed key to anything but `tools.connections.connected`.
"""

from amber.lib.secrets import decrypt, encrypt
from tools.models import Tool

_PLACE = f"{Tool._meta.db_table}.api_key"


def encrypt_api_key(tool: Tool, api_key: str) -> None:
    """Set the row's sealed key, without saving. Empty: the service wants none."""
    tool.api_key_sealed = (
        encrypt(api_key, table=_PLACE, pk=tool.pk, organization_id=tool.organization_id)
        if api_key
        else ""
    )


def decrypt_api_key(tool: Tool) -> str:
    """Empty when the service wants none. Raises DecryptError, SecretKeyError."""
    if not tool.api_key_sealed:
        return ""
    return decrypt(
        tool.api_key_sealed, table=_PLACE, pk=tool.pk, organization_id=tool.organization_id
    )
