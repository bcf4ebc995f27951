"""REST of files (docs/files.md): one view per address, one service per verb."""

import hashlib
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from accounts.access import get_visible
from accounts.authentication import HasPrincipal, principal_of
from accounts.idempotency import Replay, once
from accounts.models import IdempotencyRecord
from amber.lib.errors import TooLarge
from amber.lib.wire import StrictJSONParser, StrictMultiPartParser
from libraries import file_bytes, file_services
from libraries.file_links import file_of_link
from libraries.file_response import file_response
from libraries.models import File
from libraries.schema import (
    CONTENT_PARAMETERS,
    CONTENT_RESPONSES,
    FILE_EXAMPLES,
    IDEMPOTENCY_KEY,
)
from libraries.serializers import FileSerializer, FileUrlInput, UploadInput
from libraries.wire import file_wire

# Boundaries, headers and a long name around the one file of a form.
FORM_BYTES: Final = 65_536


class FilesView(GenericAPIView[File]):
    serializer_class = FileSerializer
    parser_classes = [StrictJSONParser, StrictMultiPartParser]

    @extend_schema(responses=FileSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your files, newest first."""
        rows = File.objects.visible_to(principal_of(request)).defer("text")
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        request={"multipart/form-data": UploadInput, "application/json": FileUrlInput},
        responses={201: FileSerializer},
        parameters=[IDEMPOTENCY_KEY],
        examples=FILE_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Store a file: upload it, or name a URL that Amber fetches.

        Images are encoded anew, without metadata. 400 `unsafe_address` for a URL that is not public.
        """
        _refuse_long_form(request)
        if request.content_type.startswith("multipart/"):
            return self._store_upload(request)
        given = _valid(FileUrlInput, request)
        return _answered_once(
            request,
            given,
            lambda claim: file_services.store_from_url(principal_of(request), claim=claim, **given),
        )

    def _store_upload(self, request: Request) -> Response:
        upload: UploadedFile[bytes] = _valid(UploadInput, request)["file"]
        # One byte too many is enough to be refused.
        name, data = upload.name or "", upload.read(settings.AMBER_MAX_UPLOAD_BYTES + 1)
        return _answered_once(
            request,
            {"name": name, "sha256": hashlib.sha256(data).hexdigest()},
            lambda claim: file_services.store_upload(
                principal_of(request), name=name, data=data, claim=claim
            ),
        )


class FileView(APIView):
    @extend_schema(responses=FileSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response(file_wire(get_visible(File, principal_of(request), file_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, file_id: UUID) -> Response:
        """The file and its bytes. Messages it was sent with stay, without it."""
        file_bytes.delete_file(get_visible(File, principal_of(request), file_id))
        return Response(status=204)


class HasSignature(BasePermission):
    """Lets in whoever brings a link's signature; the view decides whether it is good."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return "signature" in request.query_params


class AnyType(BaseContentNegotiation):
    """An <img> asks for image/*, and gets what there is; errors are JSON all the same."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        return renderers[0], renderers[0].media_type


class FileContentView(APIView):
    permission_classes = [HasSignature | HasPrincipal]
    content_negotiation_class = AnyType

    @extend_schema(parameters=CONTENT_PARAMETERS, responses=CONTENT_RESPONSES)
    def get(self, request: Request, file_id: UUID) -> HttpResponseBase:
        """The bytes, as a download. Also HEAD."""
        inline = request.query_params.get("inline") == "1"
        return file_response(request._request, _readable(request, file_id), inline=inline)


def _readable(request: Request, file_id: UUID) -> File:
    """A signature decides alone, whoever is signed in. Raises Missing."""
    signature = request.query_params.get("signature")
    if signature is not None:
        return file_of_link(file_id, signature)
    return get_visible(File, principal_of(request), file_id)


def _valid(shape: type[BaseSerializer[Any]], request: Request) -> Any:
    """Raises ValidationError."""
    given = shape(data=request.data)
    given.is_valid(raise_exception=True)
    return given.validated_data


def _refuse_long_form(request: Request) -> None:
    """Before it is parsed, and written to the disk a second time. Raises TooLarge."""
    most = settings.AMBER_MAX_UPLOAD_BYTES + FORM_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge


def _answered_once(
    request: Request, body: object, work: Callable[[IdempotencyRecord | None], File]
) -> Response:
    """201 with the file; the first answer again for an Idempotency-Key seen before."""
    done = once(
        principal_of(request),
        route=f"{request.method} {request.path}",
        key=request.headers.get("Idempotency-Key"),
        body=body,
        work=work,
    )
    if isinstance(done, Replay):
        return Response(done.answer, status=done.status)
    return Response(file_wire(done), status=201)
