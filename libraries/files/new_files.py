"""Prepare new files: write the bytes to the storage, and build the row that is still to be saved.

Bytes are written before their row, so that a row always has its bytes; whoever fails to save the
row erases them. Decides nothing about what the bytes are, and loads no code that looks into them.
"""

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from libraries.files.payload import Payload
from libraries.files.storage import write_bytes
from libraries.models import File


def unsaved_file(
    *,
    name: str,
    data: bytes | Payload,
    mime_type: str,
    text: str | None,
    organization_id: UUID,
    user_id: UUID | None,
    guest_id: str | None,
    api_key_id: UUID | None = None,
    expired_at: datetime | None = None,
) -> File:
    """Write the bytes and return the file's row, not saved. `name` is clean. Raises Unavailable."""
    payload = Payload.of(data)
    return File(
        organization_id=organization_id,
        user_id=user_id,
        guest_id=guest_id,
        api_key_id=api_key_id,
        name=name,
        file_hash=payload.sha256,
        mime_type=mime_type,
        path=write_bytes(payload),
        size=payload.size,
        text=text,
        read_at=None if text is None else timezone.now(),
        expired_at=expired_at,
    )
