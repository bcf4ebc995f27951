"""How views take what people send: forms with one file, and a key that makes a POST happen once."""

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
    """Before it is parsed, and written to the disk a second time. Raises TooLarge."""
    most = settings.AMBER_MAX_UPLOAD_BYTES + FORM_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")


def is_form(request: Request) -> bool:
    return request.content_type.startswith("multipart/")


def read_upload(upload: "UploadedFile[bytes]") -> tuple[str, bytes]:
    """Its name and bytes. One byte too many is read, which is enough to be refused."""
    return upload.name or "", upload.read(settings.AMBER_MAX_UPLOAD_BYTES + 1)


def answered_once(
    request: Request,
    body: object,
    work: Callable[[IdempotencyRecord | None], T],
    *,
    wire: Callable[[T], Mapping[str, Any]],
    status: Callable[[T], int] = lambda _: 201,
) -> Response:
    """What `work` made; the first answer again for an Idempotency-Key seen before."""
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
