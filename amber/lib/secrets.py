"""Encrypt secrets for one row under a key ring; and define the form of Amber's API keys.

Encryption is AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce. The associated data are the
table, the primary key and the organization of the row, so a text copied to another row cannot be
decrypted.

    v1.<key id>.<base64url(nonce + ciphertext + tag)>

Rows keep such texts in columns `…_sealed` (`encrypt_column`, `decrypt_column`).

The key ring is `settings.AMBER_SECRET_KEYS`: 32 random bytes in base64 each (`openssl rand -base64
32`). The first key encrypts, every key decrypts: put a new key in front, encrypt every
secret again (`operations.maintenance.secret_rotation`), drop the old key. Passphrases are refused:
whoever has the database could guess them offline.

API keys are `amb_live_`, 30 random base62 characters, and a checksum: the CRC32 of everything
before it in base62 (0-9A-Za-z), zero-padded to 6. The checksum tells a mistyped or made-up key
from a real one without asking the database. It protects nothing: only the SHA-256 of a key is
stored, and 30 base62 characters (178 bits) need no slow hash.

Messages that must come back as they were given out (a guest's token) are authenticated under the
same key ring: HMAC-SHA256 (RFC 2104) with a key of its own for each purpose.

Refuses to log, to guess, and to decrypt anything without the name of its row. The cipher is
imported on first use: 6 MB, which processes that only check keys do not pay.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import orjson
from django.conf import settings

VERSION: Final = "v1"
NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32
MAC_BYTES: Final = 32

API_KEY_MARK: Final = "amb_live_"
ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_CHARS: Final = 30
CHECKSUM_CHARS: Final = 6
# The mark and the first random characters: enough for its owner to tell keys apart.
PREFIX_CHARS: Final = len(API_KEY_MARK) + 4

_API_KEY = re.compile(rf"{API_KEY_MARK}[0-9A-Za-z]{{{RANDOM_CHARS + CHECKSUM_CHARS}}}")


class SecretKeyError(ValueError):
    """AMBER_SECRET_KEYS is empty or holds something that is not a key."""


class DecryptError(ValueError):
    """The text is damaged, from another row, or of a key that left the key ring."""


def encrypt(
    plaintext: str,
    *,
    table: str,
    pk: UUID | str,
    organization_id: UUID | str | None,
    keys: Sequence[str] | None = None,
) -> str:
    """Encrypt for one row. `organization_id` is None for rows of the platform itself.

    `keys` is the key ring, from the settings if None. Raises SecretKeyError.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key_id, key = _keys_in_order(keys)[0]
    nonce = os.urandom(NONCE_BYTES)
    row = _associated_data(table, pk, organization_id)
    encrypted = nonce + AESGCM(key).encrypt(nonce, plaintext.encode(), row)
    return f"{VERSION}.{key_id}.{base64.urlsafe_b64encode(encrypted).decode()}"


def decrypt(
    sealed: str,
    *,
    table: str,
    pk: UUID | str,
    organization_id: UUID | str | None,
    keys: Sequence[str] | None = None,
) -> str:
    """Decrypt the text of this row. Raises DecryptError, SecretKeyError."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    version, _, rest = sealed.partition(".")
    key_id, _, encoded = rest.partition(".")
    if version != VERSION:
        raise DecryptError("This is not an encrypted secret.")
    key = dict(_keys_in_order(keys)).get(key_id)
    if key is None:
        raise DecryptError(f"The key {key_id} that encrypted this is not in AMBER_SECRET_KEYS.")
    row = _associated_data(table, pk, organization_id)
    try:
        data = base64.b64decode(encoded, altchars=b"-_", validate=True)
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], row).decode()
    except (InvalidTag, ValueError):
        raise DecryptError("The encrypted secret is damaged or belongs to another row.") from None


def newest_key_id() -> str:
    """Return the id of the key that encrypts now, 8 characters. Raises SecretKeyError."""
    return _keys_in_order(None)[0][0]


def is_of_newest_key(encrypted: str) -> bool:
    """Return whether the key that encrypts now has encrypted this. Raises SecretKeyError."""
    return encrypted.startswith(f"{VERSION}.{newest_key_id()}.")


def encrypt_column(row: Any, column: str, text: str) -> None:
    """Set `<column>_sealed` of a row, without saving: the text, encrypted for it. Empty stays empty.

    Raises SecretKeyError.
    """
    setattr(row, f"{column}_sealed", encrypt(text, **cell_of(row, column)) if text else "")


def decrypt_column(row: Any, column: str) -> str:
    """Return the text in `<column>_sealed` of a row; empty stays empty.

    Raises DecryptError, SecretKeyError.
    """
    encrypted = getattr(row, f"{column}_sealed")
    return decrypt(encrypted, **cell_of(row, column)) if encrypted else ""


def cell_of(row: Any, column: str) -> dict[str, Any]:
    """Return what a text in this column of the row is encrypted for, and for nothing else."""
    return {
        "table": f"{row._meta.db_table}.{column}",
        "pk": row.pk,
        "organization_id": getattr(row, "organization_id", None),
    }


def add_mac(message: bytes, *, purpose: str) -> bytes:
    """Return the message followed by its MAC. Anybody can read it, only this ring can make it."""
    return message + _mac(_keys_in_order(None)[0][1], purpose, message)


def check_mac(signed: bytes, *, purpose: str) -> bytes | None:
    """Return the message; None unless a key of the ring made its MAC for this purpose."""
    message, mac = signed[:-MAC_BYTES], signed[-MAC_BYTES:]
    for _, key in _keys_in_order(None):
        if hmac.compare_digest(_mac(key, purpose, message), mac):
            return message
    return None


def check_keys(keys: Sequence[str]) -> None:
    """Raise SecretKeyError unless every entry is a key and there is one; for the settings."""
    _parse_keys(tuple(keys))


def new_api_key() -> str:
    """Return a new API key, which is shown once, to its creator."""
    body = API_KEY_MARK + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_CHARS))
    return body + _checksum(body)


def is_well_formed(key: str) -> bool:
    """Return whether any string has the form and the checksum of an API key."""
    if _API_KEY.fullmatch(key) is None:
        return False
    return _checksum(key[:-CHECKSUM_CHARS]) == key[-CHECKSUM_CHARS:]


def sha256_hex(key: str) -> str:
    """Return the hash by which a key is stored and found."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def prefix_of(key: str) -> str:
    """Return the part of a key that may be shown."""
    return key[:PREFIX_CHARS]


def _keys_in_order(keys: Sequence[str] | None) -> tuple[tuple[str, bytes], ...]:
    return _parse_keys(tuple(settings.AMBER_SECRET_KEYS if keys is None else keys))


@lru_cache(maxsize=8)
def _parse_keys(keys: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    if not keys:
        raise SecretKeyError("AMBER_SECRET_KEYS is empty.")
    return tuple(_parsed_key(position, text) for position, text in enumerate(keys, start=1))


def _parsed_key(position: int, text: str) -> tuple[str, bytes]:
    """Return (key id, key). Raises SecretKeyError, which names the position, never the key."""
    try:
        key = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretKeyError(
            f"Key {position} of AMBER_SECRET_KEYS is not {KEY_BYTES} bytes in base64."
            " Make one with: openssl rand -base64 32"
        )
    return hashlib.sha256(b"amber secret key id\0" + key).hexdigest()[:8], key


def _mac(key: bytes, purpose: str, message: bytes) -> bytes:
    """Return a MAC. The ring's keys encrypt, so keys derived from them authenticate."""
    own = hmac.digest(key, b"amber mac key\0" + purpose.encode(), "sha256")
    return hmac.digest(own, message, "sha256")


def _associated_data(table: str, pk: UUID | str, organization_id: UUID | str | None) -> bytes:
    owner = None if organization_id is None else str(organization_id)
    return orjson.dumps([VERSION, table, str(pk), owner])


def _checksum(text: str) -> str:
    rest = zlib.crc32(text.encode())
    digits = []
    for _ in range(CHECKSUM_CHARS):
        rest, digit = divmod(rest, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
