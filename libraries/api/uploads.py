"""Read uploads in views: forms with one file."""

from typing import Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from rest_framework.request import Request

from amber.lib.errors import TooLarge
from libraries.files.payload import Payload

FORM_BYTES: Final = 65_536
"""Boundaries, headers, a long name and a few fields around the one file of a form."""


def refuse_long_form(request: Request) -> None:
    """Raise TooLarge for a body that is too long, before it is parsed and written to the disk."""
    most = settings.AMBER_MAX_UPLOAD_BYTES + FORM_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")


def is_form(request: Request) -> bool:
    return request.content_type.startswith("multipart/")


def read_upload(upload: "UploadedFile[bytes]") -> tuple[str, Payload]:
    """Return the upload's name and bytes, which stay where Django has put them."""
    return upload.name or "", Payload(upload.file)
