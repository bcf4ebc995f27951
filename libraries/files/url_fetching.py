"""Fetch files from addresses that people give, through the guarded client."""

from dataclasses import dataclass, field

from django.conf import settings

from amber.lib.database.connections import release_connections
from amber.lib.egress import FetchError, FetchLimits, fetch_sync
from amber.lib.errors import Invalid, TooLarge
from libraries.files.names import name_of_url


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A fetched file. `mime_type` is the whole Content-Type; empty if none came."""

    data: bytes = field(repr=False)
    name: str
    mime_type: str


def fetch_url(url: str) -> FetchedFile:
    """Fetch the file, in up to 30 s and without a database connection.

    Raises UnsafeAddress, FetchError, TooLarge, Invalid.
    """
    most = settings.AMBER_MAX_UPLOAD_BYTES
    release_connections()
    try:
        answer = fetch_sync("GET", url, limits=FetchLimits(max_bytes=most))
    except FetchError as error:
        if error.reason == "too_large":
            raise TooLarge(f"A file may have at most {most:,} bytes.") from None
        raise
    if not answer.is_success:
        raise Invalid(f"The address answers with status {answer.status}, not with a file.")
    return FetchedFile(answer.body, name_of_url(url), answer.headers.get("content-type", ""))
