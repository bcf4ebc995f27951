"""An S3 on loopback (moto's server) as a pytest fixture, with what tests ask about its bucket.

A test's module takes it with `from tests.fixtures_bucket import bucket, bucket_files`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from amber.lib.storage.address import read_storage

KEYS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}
SETTING = "AMBER_FILES_URL"
NAME = "amber-files"


@dataclass(frozen=True, slots=True)
class Bucket:
    endpoint: str
    client: Any = field(repr=False)

    def url(self, prefix: str = "amber", **more: str) -> str:
        return f"s3://{NAME}/{prefix}?{urlencode({'endpoint': self.endpoint, **more})}"

    def names(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=NAME).get("Contents", [])
        return [each["Key"] for each in found]

    def body(self, name: str) -> bytes:
        return bytes(self.client.get_object(Bucket=NAME, Key=name)["Body"].read())

    def about(self, name: str) -> dict[str, Any]:
        return dict(self.client.head_object(Bucket=NAME, Key=name))

    def empty(self) -> None:
        for name in self.names():
            self.client.delete_object(Bucket=NAME, Key=name)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """The bucket is not there meanwhile; it must be empty."""
        self.client.delete_bucket(Bucket=NAME)
        try:
            yield
        finally:
            self.client.create_bucket(Bucket=NAME)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in KEYS.items():
            environment.setenv(name, value)
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        try:
            client.create_bucket(Bucket=NAME)
        except ClientError:
            server.stop()
            raise
        yield Bucket(f"http://{host}:{port}", client)
        client.close()
    server.stop()


@pytest.fixture
def bucket_files(
    bucket: Bucket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    """The installation's files are in this bucket, which is empty."""
    keep_files(settings, monkeypatch, bucket.url())
    bucket.empty()  # threads that outlive their test may have written
    yield bucket
    bucket.empty()


def entry_of(monkeypatch: pytest.MonkeyPatch, url: str) -> dict[str, Any]:
    monkeypatch.setenv(SETTING, url)
    entry = read_storage(SETTING)
    assert entry is not None
    return entry


def keep_files(settings: Any, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """As if Amber had been started with this address."""
    settings.STORAGES = settings.STORAGES | {"default": entry_of(monkeypatch, url)}
