"""Seal the fields in which a model's thoughts are readable, where its assistant hides them.

Whoever holds a chat elsewhere (an export, a client of `/v1` with tools of its own) brings them back as
they were, and only this installation can open them, for the same organization.
"""

from typing import Any, Final
from uuid import UUID

import orjson

from amber.lib.secrets import DecryptError, decrypt, encrypt
from engine.provider_fields import StoredFields, stored_form

SEALED: Final = "amber_sealed"
"""The field of a message that holds its other fields."""

_PLACE: Final = "chats_chatmessage.provider_fields"


def seal_fields(stored: StoredFields, organization_id: UUID) -> StoredFields | None:
    """Return the stored form with the fields of its message sealed; a call's say nothing."""
    message = stored.get("message", {})
    sealed = {}
    if message:
        text = orjson.dumps(message).decode()
        sealed[SEALED] = encrypt(text, table=_PLACE, pk="", organization_id=organization_id)
    return stored_form(stored["sender"], message=sealed, call=stored.get("call", {}))


def open_fields(stored: StoredFields | None, organization_id: UUID) -> StoredFields | None:
    """Return the stored form as it was before it was sealed; without what cannot be opened."""
    if stored is None or SEALED not in stored.get("message", {}):
        return stored
    fields: dict[str, Any] = {}
    sealed = stored["message"][SEALED]
    try:
        if isinstance(sealed, str):
            opened = decrypt(sealed, table=_PLACE, pk="", organization_id=organization_id)
            fields = orjson.loads(opened)
    except DecryptError:  # of another installation or organization: the model does without
        pass
    return stored_form(stored["sender"], message=fields, call=stored.get("call", {}))
