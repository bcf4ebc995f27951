"""Store files: a row in the database, its bytes in the storage.

Bytes are written before their row, so that a row always has its bytes. What was written for a row
that then failed is deleted at once; only a process that dies in between leaves bytes that nobody
refers to.
"""

from datetime import datetime
from functools import partial

from django.db import transaction

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.allowance import refuse_beyond
from accounts.tenancy.idempotency import settle
from amber.lib.errors import blame_field
from amber.lib.secrets import sha256_hex
from libraries.files.content import Content, read_content
from libraries.files.names import clean_name
from libraries.files.new_files import unsaved_file
from libraries.files.payload import Payload
from libraries.files.storage import erasing_unstored
from libraries.files.url_fetching import fetch_url
from libraries.models import File
from libraries.queue import enqueue_reading
from libraries.wire import file_wire


def store_upload(
    principal: Principal,
    *,
    name: str,
    data: bytes | Payload,
    expired_at: datetime | None = None,
    at_most: int | None = None,
    claim: IdempotencyRecord | None = None,
) -> File:
    """Store these bytes as a file of the principal. `name` may be anything; it is cleaned.

    Raises TooLarge, Invalid (empty, or a damaged image), Unavailable (the storage cannot be
    reached), and Conflict for a principal who has `at_most` files already.
    """
    name = clean_name(name)
    with blame_field("file"):
        content = read_content(name, data)
    file = _build_file(principal, content, name=name, expired_at=expired_at)
    return _store_file(file, principal, claim=claim, at_most=at_most)


def store_from_url(
    principal: Principal, *, url: str, claim: IdempotencyRecord | None = None
) -> File:
    """Fetch the address through the guarded client and store what it answers.

    Raises as `store_upload`, UnsafeAddress, and Invalid for an address that gives no file.
    """
    with blame_field("url"):
        fetched = fetch_url(url)
        content = read_content(fetched.name, fetched.data)
    file = _build_file(principal, content, name=fetched.name)
    file.url, file.url_hash = url, sha256_hex(url)
    return _store_file(file, principal, claim=claim)


def prepare_file(principal: Principal, *, name: str, data: bytes) -> File:
    """Write these bytes and return their row, which the caller saves (`save_file`), or else erases
    the bytes.

    Raises as `store_upload`.
    """
    name = clean_name(name)
    return _build_file(principal, read_content(name, data), name=name)


def _build_file(
    principal: Principal, content: Content, *, name: str, expired_at: datetime | None = None
) -> File:
    return unsaved_file(
        name=name,
        data=content.data,
        mime_type=content.mime_type,
        text=content.text,
        organization_id=principal.organization_id,
        user_id=principal.user.pk if principal.user else None,
        guest_id=principal.guest_id,
        api_key_id=principal.key.pk if principal.key else None,
        expired_at=expired_at,
    )


def _store_file(
    file: File,
    principal: Principal,
    *,
    claim: IdempotencyRecord | None,
    at_most: int | None = None,
) -> File:
    with erasing_unstored([file.path]):
        _record(file, principal, claim, at_most)
    return file


@transaction.atomic(durable=True)
def _record(
    file: File, principal: Principal, claim: IdempotencyRecord | None, at_most: int | None
) -> None:
    if at_most is not None:
        said = f"You have reached the limit of {at_most} files. Delete one first."
        refuse_beyond(File, principal, at_most, said=said)
    save_file(file, principal)
    settle(claim, status=201, answer=file_wire(file))


def save_file(file: File, principal: Principal) -> None:
    """Save a new file's row in the caller's transaction; it is read for models after it."""
    file.save(force_insert=True)
    if file.is_waiting:
        transaction.on_commit(partial(enqueue_reading, file.pk, principal.tenant))
