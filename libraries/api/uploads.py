"""Read uploads in views: forms with one file, and a key that makes a POST happen once."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import IdempotencyRecord
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.idempotency import Replay, once
from amber.lib.errors import TooLarge

FORM_BYTES: Final = 65_536
"""Boundaries, headers, a long name and a few fields around the one file of a form."""

T = TypeVar("T")


def refuse_long_form(request: Request) -> None:
    """Raise TooLarge for a body that is too long, before it is parsed and written to the disk."""
    most = settings.AMBER_MAX_UPLOAD_BYTES + FORM_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")


def is_form(request: Request) -> bool:
    return request.content_type.startswith("multipart/")


def read_upload(upload: "UploadedFile[bytes]") -> tuple[str, bytes]:
    """Return the upload's name and bytes.

    At most one byte over the limit is read, which is enough to be refused.
    """
    return upload.name or "", upload.read(settings.AMBER_MAX_UPLOAD_BYTES + 1)


def answered_once(
    request: Request,
    body: object,
    work: Callable[[IdempotencyRecord | None], T],
    *,
    wire: Callable[[T], Mapping[str, Any]],
    status: Callable[[T], int] = lambda _: 201,
) -> Response:
    """Do the work once and answer with what it made.

    For an Idempotency-Key seen before, the first answer is repeated.
    """
    done = once(
        principal_of(request),
        route=f"{request.method} {request.path}",
        key=request.headers.get("Idempotency-Key"),
        body=body,
        work=work,
    )
    if isinstance(done, Replay):
        return Response(done.answer, status=done.status)
    return Response(wire(done), status=status(done))
