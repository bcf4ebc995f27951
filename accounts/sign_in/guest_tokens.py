"""Make and read guest tokens: a visitor's credential for one public assistant.

    amb_guest_ + base64url of: version (1 byte), organization, assistant and guest (16 bytes each),
    epoch (4), end in seconds since 1970 (8), HMAC-SHA256 of all that (32)

Nothing is stored: whoever holds one is that guest until it ends. `epoch` is the assistant's at the
time; raising the assistant's (`accounts.registry.PublicAssistant`) ends all its tokens at once.

Refuses to say why a token is none: whether it is forged, cut or too old is nobody's business.
"""

import base64
import binascii
import secrets
import struct
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from accounts.registry import PublicAssistant
from amber.lib.secrets import add_mac, check_mac

MARK: Final = "amb_guest_"
VERSION: Final = 1
PURPOSE: Final = "guest token"
GUEST_PREFIX: Final = "web:"
"""The beginning of the ids of guests with a token. Programs that name guests must not use it."""

MAX_CHARS: Final = 400
_FORM: Final = struct.Struct(">B16s16s16sIQ")
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class GuestToken:
    """The contents of a genuine token; whether its assistant still takes guests is not checked."""

    organization_id: UUID
    assistant_id: UUID
    guest: UUID
    epoch: int
    ends_at: datetime

    @property
    def guest_id(self) -> str:
        """The guest's id in rows."""
        return f"{GUEST_PREFIX}{self.guest.hex}"

    def is_for(self, assistant: PublicAssistant | None) -> bool:
        """Return whether the assistant, as it is now, takes this guest. None: no longer public."""
        return assistant is not None and (
            self.organization_id == assistant.organization_id
            and self.assistant_id == assistant.id
            and self.epoch == assistant.guest_epoch
        )


def new_guest_token(assistant: PublicAssistant) -> tuple[GuestToken, str]:
    """Return a token for a new guest of this assistant, and its text."""
    ends_at = int(time.time() + settings.AMBER_GUEST_TOKEN_DAYS * _DAY_SECONDS)
    token = GuestToken(
        organization_id=assistant.organization_id,
        assistant_id=assistant.id,
        guest=UUID(bytes=secrets.token_bytes(16)),
        epoch=assistant.guest_epoch,
        ends_at=datetime.fromtimestamp(ends_at, UTC),
    )
    return token, MARK + _encode(add_mac(_pack(token), purpose=PURPOSE))


def looks_like_guest_token(text: str) -> bool:
    return text.startswith(MARK)


def read_guest_token(text: str) -> GuestToken | None:
    """Return the token; None if this installation did not make it or it has ended. No query."""
    if not looks_like_guest_token(text) or len(text) > MAX_CHARS:
        return None
    try:
        signed = base64.b64decode(_pad(text.removeprefix(MARK)), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    message = check_mac(signed, purpose=PURPOSE)
    if message is None or len(message) != _FORM.size:
        return None
    version, organization, assistant, guest, epoch, ends_at = _FORM.unpack(message)
    if version != VERSION or ends_at <= time.time():
        return None
    return GuestToken(
        organization_id=UUID(bytes=organization),
        assistant_id=UUID(bytes=assistant),
        guest=UUID(bytes=guest),
        epoch=epoch,
        ends_at=datetime.fromtimestamp(ends_at, UTC),
    )


def _pack(token: GuestToken) -> bytes:
    ids = (token.organization_id, token.assistant_id, token.guest)
    ends_at = int(token.ends_at.timestamp())
    return _FORM.pack(VERSION, *(each.bytes for each in ids), token.epoch, ends_at)


def _encode(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).decode().rstrip("=")


def _pad(text: str) -> str:
    return text + "=" * (-len(text) % 4)
