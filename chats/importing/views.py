"""Serve the import of chats: one address for every format (docs/importing.md)."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import parsers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from amber.lib.errors import Invalid, TooLarge
from amber.lib.rest.wire import StrictMultiPartParser
from assistants.models import Assistant
from chats.api.serializers import (
    ImportInput,
    ImportOptionsInput,
    ImportReportSerializer,
    ImportUpload,
)
from chats.importing.parts import open_parts
from chats.importing.services import ImportOptions, ImportReport, import_chats

UNPACKED_TIMES: Final = 10
"""What a zip may unpack to, in times of what it may weigh."""


class RawJSONParser(parsers.BaseParser):
    """Leaves JSON as it is: exports are lists as well as objects, and parsed piece by piece."""

    media_type = "application/json"

    def parse(  # type: ignore[override]  # REST framework takes whatever it returns
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        body: bytes = stream.body if isinstance(stream, HttpRequest) else stream.read()
        return body


class ChatImportView(APIView):
    parser_classes = [RawJSONParser, StrictMultiPartParser]
    bound_keys_may = ("POST",)

    @extend_schema(
        request={"application/json": ImportInput, "multipart/form-data": ImportUpload},
        responses={201: ImportReportSerializer},
        parameters=[
            OpenApiParameter("assistant_id", {"type": "string", "format": "uuid"}),
            OpenApiParameter("again", bool),
            IDEMPOTENCY_KEY,
        ],
    )
    def post(self, request: Request) -> Response:
        """Make chats of an export of Amber, ChatGPT, Open WebUI or LibreChat, or of OpenAI's messages.

        Send JSON as the body, or upload the export's file or files (JSON, or the zip as it was
        downloaded). What was taken in before is not taken in again. If `can_be_asked` is false, a
        chat has no assistant that you may use: `notice` says what to do.
        """
        principal = principal_of(request)
        files, given = _read_files(request)
        options = ImportOptions(is_copied=given["again"])
        if "assistant_id" in given:
            assistant = get_visible(Assistant, principal, given["assistant_id"])
            options = ImportOptions(assistant, True, given["again"])
        opened = partial(
            open_parts, files, total_bytes=UNPACKED_TIMES * settings.AMBER_MAX_IMPORT_BYTES
        )
        return answer_once(
            request,
            lambda claim: import_chats(principal, opened, options=options, claim=claim),
            ImportReport.wire,
            body=[*_hashes(files), given],
        )


def _read_files(request: Request) -> tuple[list[tuple[str, bytes]], dict[str, Any]]:
    """Return what was sent, by name, and the options beside it. Raises TooLarge, ValidationError."""
    most = settings.AMBER_MAX_IMPORT_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge(f"An import may have at most {most:,} bytes.")
    sent: Any = request.data
    options = request.query_params.dict()
    if not request.content_type.startswith("multipart/"):
        files = [("chats.json", sent or b"")]
    else:
        uploads = request.FILES.getlist("file")
        if not uploads:
            raise Invalid(fields={"file": ["Upload the export's file."]})
        files = [(upload.name or "", upload.read()) for upload in uploads]
        options = {**request.POST.dict(), **options}
    if sum(len(data) for _, data in files) > most:
        raise TooLarge(f"An import may have at most {most:,} bytes.")
    given = ImportOptionsInput(data=options)
    given.is_valid(raise_exception=True)
    return files, given.validated_data


def _hashes(files: list[tuple[str, bytes]]) -> list[str]:
    return [hashlib.sha256(data).hexdigest() for _, data in files]
