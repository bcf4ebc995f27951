"""Write the bytes of files under random names, and erase them after their rows.

Bytes go only when the transaction that deletes their row has committed, so that no row is ever
without them. Loads neither image code nor the HTTP client, so that workers can delete files.
"""

import secrets
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final
from uuid import UUID

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet

from amber.lib.errors import Unavailable
from libraries.models import File

logger = structlog.get_logger(__name__)

# One transaction's worth: each row is a file to unlink after it.
DELETED_AT_ONCE: Final = 500


@transaction.atomic(durable=True)
def delete_file(file: File) -> None:
    """Delete the file and its bytes. Messages and documents that refer to it stay, without it."""
    file.delete()
    transaction.on_commit(partial(erase_bytes, file.path))


@transaction.atomic(durable=True)
def delete_files(files: QuerySet[File]) -> int:
    """Delete up to DELETED_AT_ONCE of these and return how many; call it again until it is 0.

    For expired files (`File.objects.past_expiry()`), and before users or organizations are deleted:
    their cascade would leave the bytes.
    """
    rows = files.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    paths = dict(rows.values_list("pk", "path")[:DELETED_AT_ONCE])
    File.objects.filter(pk__in=paths).delete()
    for path in paths.values():
        transaction.on_commit(partial(erase_bytes, path))
    return len(paths)


def drop_files(ids: Collection[UUID]) -> int:
    """Delete these in the caller's transaction, and their bytes after it; return their number."""
    rows = File.objects.filter(pk__in=ids).select_for_update().order_by("pk")
    paths = dict(rows.values_list("pk", "path"))
    File.objects.filter(pk__in=paths).delete()
    for path in paths.values():
        transaction.on_commit(partial(erase_bytes, path))
    return len(paths)


def write_bytes(data: bytes) -> str:
    """Write the bytes and return the random name they got. Raises Unavailable."""
    token = secrets.token_hex(16)
    path = f"{token[:2]}/{token[2:4]}/{token}"
    try:
        return default_storage.save(path, ContentFile(data))
    except OSError:
        logger.exception("file_not_written", size=len(data))
        with suppress(OSError):
            default_storage.delete(path)
        raise Unavailable("Files cannot be stored at the moment. Try again later.") from None


def erase_bytes(path: str) -> None:
    """Erase the bytes. If the storage cannot be reached they stay, although their row is gone."""
    try:
        default_storage.delete(path)
    except OSError:
        logger.exception("file_not_erased")


def delete_expired_files() -> None:
    """Delete expired files with their bytes, in batches."""
    while delete_files(File.objects.past_expiry()):
        pass
