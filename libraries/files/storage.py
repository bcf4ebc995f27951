"""Write the bytes of files under random names, read them, and erase them after their rows.

This is the only way to the storage (`amber.lib.storage`). Bytes go only when the transaction that deletes
their row has committed, so that no row is ever without them. What could not be erased then is erased
later: names that failed are kept in Redis, and `erase_orphans` finds what no row names. Loads neither
image code nor the HTTP client, so that workers can delete files.
"""

import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import IO, Any, Final, cast
from uuid import UUID

import structlog
from django.core.files.base import File as StoredBytes
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Min, QuerySet
from django.utils import timezone
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.errors import Unavailable
from amber.lib.storage.files import file_storage
from libraries.files.payload import PIECE_BYTES, Payload
from libraries.models import File

logger = structlog.get_logger(__name__)

# One transaction's worth: each row is a file to unlink after it.
DELETED_AT_ONCE: Final = 500
NOT_STORED: Final = "Files cannot be stored at the moment. Try again later."
NOT_READ: Final = (
    "Files cannot be read at the moment. Try again later; if that does not help, tell whoever runs this "
    "installation."
)
SPOOLED_BYTES: Final = 1_048_576
"""Of a file that is copied from a bucket, what may be in memory; the rest is on the disk."""
ORPHAN_AGE: Final = timedelta(days=1)
"""How old bytes without a row must be to be erased: younger ones may belong to an upload under way."""
FOLDERS: Final = 256
ORPHANS_EVERY_SECONDS: Final = 600


@transaction.atomic(durable=True)
def delete_file(file: File) -> None:
    """Delete the file and its bytes. Messages and documents that refer to it stay, without it."""
    remove_files(File.objects.filter(pk=file.pk))


@transaction.atomic(durable=True)
def delete_files(files: QuerySet[File]) -> int:
    """Delete up to DELETED_AT_ONCE of these and return how many; call it again until it is 0.

    For expired files (`File.objects.past_expiry()`), and before users or organizations are deleted:
    their cascade would leave the bytes.
    """
    rows = files.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    return _remove(dict(rows.values_list("pk", "path")[:DELETED_AT_ONCE]))


def remove_files(files: QuerySet[File]) -> int:
    """Delete these in the caller's transaction, and their bytes after it; return their number."""
    rows = files.select_for_update(of=("self",)).order_by("pk")
    return _remove(dict(rows.values_list("pk", "path")))


def _remove(paths: Mapping[UUID, str]) -> int:
    File.objects.filter(pk__in=paths).delete()
    for path in paths.values():
        transaction.on_commit(partial(erase_bytes, path))
    return len(paths)


def random_path() -> str:
    token = secrets.token_hex(16)
    return f"{token[:2]}/{token[2:4]}/{token}"


def write_bytes(payload: Payload) -> str:
    """Write the bytes, piece by piece, and return the random name they got. Raises Unavailable."""
    path = random_path()
    try:
        return file_storage().save(path, StoredBytes(payload.stream, name=path))
    except OSError:
        logger.exception("file_not_written", size=payload.size)
        with suppress(OSError):
            file_storage().delete(path)
        raise Unavailable(NOT_STORED) from None


def open_bytes(path: str) -> Any:
    """Open the bytes, to be read once from their beginning. Raises FileNotFoundError, Unavailable."""
    with faults_as_unavailable():
        return file_storage().open(path)


@contextmanager
def seekable_bytes(path: str) -> Iterator[IO[bytes]]:
    """Open the bytes, to be read from any place: from a bucket they are copied to this machine first.

    Raises FileNotFoundError, Unavailable.
    """
    with open_bytes(path) as stored:
        if file_storage().is_seekable:
            yield stored
            return
        with tempfile.SpooledTemporaryFile(SPOOLED_BYTES) as copy:
            with faults_as_unavailable():
                while piece := stored.read(PIECE_BYTES):
                    copy.write(piece)
            copy.seek(0)
            yield cast(IO[bytes], copy)


def read_bytes(path: str) -> bytes:
    """Return all bytes, of a file that is needed whole. Raises FileNotFoundError, Unavailable."""
    with faults_as_unavailable(), file_storage().open(path) as stored:
        return bytes(stored.read())


@contextmanager
def faults_as_unavailable() -> Iterator[None]:
    """Log a storage that cannot be reached, and raise Unavailable with what people may read of it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError:
        logger.exception("files_not_reached")
        raise Unavailable(NOT_READ) from None


@contextmanager
def erasing_unstored(paths: Iterable[str]) -> Iterator[None]:
    """Erase these bytes if the block fails, in which a transaction stores their rows.

    If the database went away, nobody knows whether its commit came through: then they stay, and
    `erase_orphans` erases those that no row names.
    """
    try:
        yield
    except (OperationalError, InterfaceError):
        raise
    except BaseException:
        for path in paths:
            erase_bytes(path)
        raise


def erase_bytes(path: str) -> None:
    """Erase the bytes; if the storage cannot be reached, a periodic job does it later."""
    try:
        file_storage().delete(path)
    except OSError:
        logger.exception("file_not_erased")
        with suppress(RedisError):  # then `erase_orphans` finds it
            amber_redis.client().sadd(_unerased_key(), path)


def delete_expired_files() -> None:
    """Delete expired files with their bytes, in batches; and bytes that could not be erased before."""
    while delete_files(File.objects.past_expiry()):
        pass
    for path in cast(list[bytes], amber_redis.client().spop(_unerased_key(), DELETED_AT_ONCE)):
        erase_bytes(path.decode())


def erase_orphans() -> None:
    """Erase bytes that no row names: their process died between the two, or they could not be erased.

    Each run looks at one folder of 256, so that all had their turn after two days. What is older than
    this database stays: it belongs to another, perhaps to one that is about to be restored.
    """
    folder = int(time.time()) // ORPHANS_EVERY_SECONDS % FOLDERS
    since, before = _first_migration_at(), timezone.now() - ORPHAN_AGE
    stored = file_storage().walk(f"{folder:02x}/")
    names = (each.name for each in stored if since <= each.modified_at < before)
    while some := list(islice(names, DELETED_AT_ONCE)):
        kept = set(File.objects.filter(path__in=some).values_list("path", flat=True))
        for path in set(some) - kept:
            erase_bytes(path)


def _first_migration_at() -> datetime:
    """Return when this database was made; one restored from a backup keeps the time of the first."""
    migrations = MigrationRecorder(connection).migration_qs
    return cast(datetime, migrations.aggregate(at=Min("applied"))["at"])


def _unerased_key() -> bytes:
    return amber_redis.key("unerased-files", None)
