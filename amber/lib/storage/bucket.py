"""Keep files in a bucket of S3, or of any server that speaks its protocol.

Uploads go in parts of PART_BYTES, one after the other, and downloads as they are read: no file is held
in memory. One client serves all threads of a process (it is made for that; a client takes 100 ms and
some megabytes to make), and a forked child gets its own.

The endpoint is the operator's, like Postgres or Redis, so it is reached directly and not by the guarded
client, which is for addresses of tenants (docs/architecture.md). boto3's errors do not leave this module:
they become OSError, without the address, which may hold a signature.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

from amber.lib.egress.policy import EgressPolicy, UnsafeAddress
from amber.lib.storage.files import StoredFile

PART_BYTES: Final = 8 * 1_048_576
"""S3 wants 5 MiB at least; most files have one part."""
CONNECT_SECONDS: Final = 3
READ_SECONDS: Final = 10
"""The longest silence of the server; a part of 8 MiB may take longer as a whole."""
ATTEMPTS: Final = 3
REST_SECONDS: Final = 10
"""After a fault nothing is deleted for so long: who deletes hundreds of files must not wait for each."""
LINK_SECONDS: Final = 900
"""A link outlives the turn it is made for (AMBER_TURN_SECONDS) and little more."""
LINK_STEP_SECONDS: Final = 300
"""So long a process gives the same link again: a provider's prefix cache then knows the conversation."""

_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})


class BucketError(OSError):
    """The bucket did not do what it was asked. Says what failed, without addresses and keys."""


class BucketStorage(S3Storage):
    """`links`: whether models may be given links; None: if the endpoint is public."""

    is_seekable = False

    def __init__(self, *, links: bool | None = None, **options: Any) -> None:
        super().__init__(
            **options,
            client_config=_config(options.get("addressing_style"), options.get("endpoint_url")),
            transfer_config=TransferConfig(
                multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, use_threads=False
            ),
            file_overwrite=True,  # names are random: asking whether one is taken costs a request
        )
        self._links = links
        self._resources: dict[int, Any] = {}
        self._rests_until = 0.0

    @property
    def connection(self) -> Any:
        """Return this process's connection. Two threads may both make one; one of them is kept."""
        found = self._resources.get(os.getpid())
        if found is None:
            with _as_os_errors():
                found = self._create_session().resource(
                    "s3",
                    region_name=self.region_name,
                    endpoint_url=self.endpoint_url,
                    config=self.client_config,
                )
            self._resources = {os.getpid(): found}
        return found

    @property
    def client(self) -> Any:
        return self.connection.meta.client

    def walk(self, prefix: str = "") -> Iterator[StoredFile]:
        """List a thousand files with each request."""
        begin = f"{self.location}/" if self.location else ""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket_name, Prefix=begin + prefix
        )
        with _as_os_errors():
            for page in pages:
                for entry in page.get("Contents", ()):
                    name = entry["Key"].removeprefix(begin)
                    yield StoredFile(name, entry["Size"], entry["LastModified"])

    def check(self) -> None:
        with _as_os_errors():
            self.client.list_objects_v2(
                Bucket=self.bucket_name, Prefix=f"{self.location}/", MaxKeys=1
            )

    def link(self, name: str, *, mime_type: str) -> str:
        if self._links is None:
            self._links = is_public(self.endpoint_url)
        if not self._links:
            return ""
        return _steady_link(self, name, mime_type, int(time.time()) // LINK_STEP_SECONDS)

    def sign_link(self, name: str, mime_type: str) -> str:
        """Sign an address for GET. No request: only credentials may have to be fetched."""
        asked = {**self._at(name), "ResponseContentType": mime_type}
        with _as_os_errors():
            signed = self.client.generate_presigned_url(
                "get_object", Params=asked, ExpiresIn=LINK_SECONDS
            )
        return str(signed)

    def exists(self, name: str) -> bool:
        with _as_os_errors():
            return bool(super().exists(name))

    def size(self, name: str) -> int:
        with _as_os_errors():
            return int(self.client.head_object(**self._at(name))["ContentLength"])

    def delete(self, name: str) -> None:
        if time.monotonic() < self._rests_until:
            raise BucketError("The bucket could not be reached a moment ago.")
        with self._resting_after_faults():
            self.client.delete_object(**self._at(name))

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        with _as_os_errors():
            answer = self.client.get_object(**self._at(name))
        return _Download(answer["Body"], name, answer["ContentLength"])

    def _save(self, name: str, content: "File[bytes]") -> str:
        content.seek(0)
        at = self._at(name)
        with self._resting_after_faults():
            self.client.upload_fileobj(
                _LentFile(content),
                *at.values(),
                ExtraArgs=self._get_write_parameters(name, content),
                Config=self.transfer_config,
            )
        return name

    @contextmanager
    def _resting_after_faults(self) -> Iterator[None]:
        try:
            with _as_os_errors():
                yield
        except BucketError:
            self._rests_until = time.monotonic() + REST_SECONDS
            raise

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._normalize_name(clean_name(name))}


class _Download(File):  # type: ignore[type-arg]  # Django's has no parameter at run time
    """The bytes of an answer, read as they come. They can be read once, from the beginning."""

    def __init__(self, body: Any, name: str, size: int) -> None:
        super().__init__(body, name)
        self._body = body
        self.size = size

    def read(self, most_bytes: int = -1) -> bytes:
        with _as_os_errors():
            return bytes(self._body.read(None if most_bytes < 0 else most_bytes))


class _LentFile:
    """Keeps a file open: s3transfer closes what it uploads, but the caller may need it again."""

    def __init__(self, file: "File[bytes]") -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def close(self) -> None:
        """Leave it open."""


@lru_cache(maxsize=4_096)
def _steady_link(storage: BucketStorage, name: str, mime_type: str, _step: int) -> str:
    return storage.sign_link(name, mime_type)


def is_public(endpoint: str | None) -> bool:
    """Return whether others can reach the endpoint, by its form: https, and no private address or name.

    None is Amazon's own. Asks no name server.
    """
    if endpoint is None:
        return True
    parts = urlsplit(endpoint)
    try:
        EgressPolicy(ports=frozenset({parts.port or 443})).check_url(endpoint)
    except UnsafeAddress:
        return False
    return parts.scheme == "https"


def _config(addressing: str | None, endpoint: str | None) -> Config:
    # Other servers than Amazon's may not know the checksums that boto3 adds by itself.
    checksums = "when_required" if endpoint else "when_supported"
    return Config(
        signature_version="s3v4",
        s3={"addressing_style": addressing or "auto"},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=32,
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
    )


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise boto3's errors as OSError, and FileNotFoundError for a file that is not there."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _ABSENT:
            raise FileNotFoundError("The bucket has no such file.") from None
        raise BucketError(f"The bucket refused {error.operation_name}: {code}.") from None
    except (BotoCoreError, Boto3Error) as error:
        raise BucketError(f"The bucket cannot be reached: {type(error).__name__}.") from None
