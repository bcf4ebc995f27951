"""Read where files are kept from the environment: file:///folder or s3://bucket/prefix?….

Returns entries of Django's STORAGES and loads no storage. Refuses credentials in the address: boto3
finds them in its own places, and addresses are shown.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

FOLDER: Final = "amber.lib.storage.folder.FolderStorage"
BUCKET: Final = "amber.lib.storage.bucket.BucketStorage"
MOVING: Final = "amber.lib.storage.moving.MovingStorage"

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,200}")
"""The characters that every S3 takes unencoded. With a name of 38 characters behind it, a key stays short."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "sse": ("AES256", "aws:kms"),
    "addressing": ("auto", "path", "virtual"),
    "links": ("0", "1"),
}
_PARAMETERS: Final = frozenset({"endpoint", "region", "kms_key", *_CHOICES})

Entry = dict[str, Any]


def read_storage(name: str) -> Entry | None:
    """Return the entry of STORAGES that the variable names; None if it is not set.

    Raises ImproperlyConfigured with one sentence that says what is wrong.
    """
    raw = os.environ.get(name, "").strip()
    if not raw:
        return None
    try:
        parts = urlsplit(raw)
        if parts.scheme == "file":
            return _folder(parts.netloc, unquote(parts.path), parts.query)
        if parts.scheme == "s3":
            return _bucket(parts.netloc, unquote(parts.path).strip("/"), _query(parts.query))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} {error}.") from None
    raise ImproperlyConfigured(
        f"{name} must have the form file:///folder or s3://bucket/prefix?region=eu-central-1."
    )


def moving(current: Entry, old: Entry) -> Entry:
    """Return the entry of a storage that writes to `current` and still reads `old`."""
    return {"BACKEND": MOVING, "OPTIONS": {"current": current, "old": old}}


def folder_entry(folder: Path) -> Entry:
    return {"BACKEND": FOLDER, "OPTIONS": {"location": folder}}


def _folder(host: str, path: str, query: str) -> Entry:
    if host not in ("", "localhost") or query or not path.strip("/"):
        raise ValueError("must name a folder by its whole path, as file:///var/lib/amber/files")
    return folder_entry(Path(path).absolute())


def _query(raw: str) -> dict[str, str]:
    given = parse_qsl(raw, keep_blank_values=True)
    names = [name for name, _ in given]
    if unknown := sorted(set(names) - _PARAMETERS):
        raise ValueError(
            f"has the parameter {unknown[0]!r}; known are {', '.join(sorted(_PARAMETERS))}"
        )
    if len(names) > len(set(names)):
        raise ValueError("has a parameter twice")
    for name, among in _CHOICES.items():
        if (value := dict(given).get(name, among[0])) not in among:
            raise ValueError(f"has {name}={value}; it must be one of {', '.join(among)}")
    return dict(given)


def _bucket(bucket: str, prefix: str, given: Mapping[str, str]) -> Entry:
    if "@" in bucket:
        raise ValueError(
            "must not hold keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the path of a "
            "file with them as AWS_SHARED_CREDENTIALS_FILE"
        )
    if not _BUCKET_NAME.fullmatch(bucket):
        raise ValueError("must name a bucket, as s3://my-bucket/prefix")
    if not _PREFIX.fullmatch(prefix) or {"", ".", ".."} & set(prefix.split("/")) - {prefix}:
        raise ValueError("has a prefix that is too long, or holds other than letters, digits and /")
    if "kms_key" in given and given.get("sse") != "aws:kms":
        raise ValueError("has kms_key, which needs sse=aws:kms")
    links = given.get("links")
    return {
        "BACKEND": BUCKET,
        "OPTIONS": {
            "bucket_name": bucket,
            "location": prefix,
            "endpoint_url": _endpoint(given.get("endpoint", "")),
            "region_name": given.get("region") or None,
            "addressing_style": given.get("addressing"),
            "object_parameters": _encryption(given),
            "links": None if links is None else links == "1",
        },
    }


def _endpoint(raw: str) -> str | None:
    """Return the address of a server that is not Amazon's. Raises ValueError."""
    if not raw:
        return None
    parts = urlsplit(raw)
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc or parts.path.strip("/"))
    # Reading the port raises ValueError for what is no number.
    try:
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not (is_address and is_plain):
        raise ValueError("has an endpoint that is no address like https://s3.example.com")
    return raw.rstrip("/")


def _encryption(given: Mapping[str, str]) -> dict[str, str]:
    """Return what every upload says about its encryption; nothing leaves it to the bucket."""
    named = {"ServerSideEncryption": given.get("sse"), "SSEKMSKeyId": given.get("kms_key")}
    return {name: value for name, value in named.items() if value}
