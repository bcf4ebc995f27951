"""Serve the REST API of files (docs/files.md): one view per address, one service per verb."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import HasPrincipal, principal_of
from accounts.tenancy.access import get_visible
from amber.lib.rest.wire import StrictJSONParser, StrictMultiPartParser, validate_body
from libraries.api.file_serializers import FileSerializer, FileUrlInput, UploadInput
from libraries.api.schema import CONTENT_PARAMETERS, CONTENT_RESPONSES, FILE_EXAMPLES
from libraries.api.uploads import is_form, read_upload, refuse_long_form
from libraries.files import services, storage
from libraries.files.links import file_of_link
from libraries.files.response import file_response
from libraries.models import File
from libraries.wire import file_wire


class FilesView(GenericAPIView[File]):
    serializer_class = FileSerializer
    parser_classes = [StrictJSONParser, StrictMultiPartParser]
    bound_keys_may = ("GET", "POST")

    @extend_schema(responses=FileSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your files, newest first."""
        rows = File.objects.visible_to(principal_of(request)).defer("text")
        page = self.paginate_queryset(rows)
        return self.get_paginated_response([file_wire(file) for file in page or ()])

    @extend_schema(
        request={"multipart/form-data": UploadInput, "application/json": FileUrlInput},
        responses={201: FileSerializer},
        parameters=[IDEMPOTENCY_KEY],
        examples=FILE_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Store a file: upload it, or name a URL that Amber fetches.

        Images are re-encoded without their metadata. 400 `unsafe_address` for a URL that is not
        public.
        """
        refuse_long_form(request)
        if is_form(request):
            return self._store_upload(request)
        given = validate_body(FileUrlInput, request)
        return answer_once(
            request,
            lambda claim: services.store_from_url(principal_of(request), claim=claim, **given),
            file_wire,
            body=given,
        )

    def _store_upload(self, request: Request) -> Response:
        name, data = read_upload(validate_body(UploadInput, request)["file"])
        return answer_once(
            request,
            lambda claim: services.store_upload(
                principal_of(request), name=name, data=data, claim=claim
            ),
            file_wire,
            body={"name": name, "sha256": data.sha256},
        )


class FileView(APIView):
    bound_keys_may = ("GET", "DELETE")

    @extend_schema(responses=FileSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        """Show a file, without its bytes."""
        return Response(file_wire(get_visible(File, principal_of(request), file_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, file_id: UUID) -> Response:
        """Delete a file and its bytes. Messages it was sent with stay, without it."""
        storage.delete_file(get_visible(File, principal_of(request), file_id))
        return Response(status=204)


class HasSignature(BasePermission):
    """Lets in every request with a link's signature; the view decides whether it is valid."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return "signature" in request.query_params


class AnyType(BaseContentNegotiation):
    """Accepts any Accept header: an <img> asks for image/*, and errors are JSON all the same."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        return renderers[0], renderers[0].media_type


class FileContentView(APIView):
    permission_classes = [HasSignature | HasPrincipal]
    content_negotiation_class = AnyType
    bound_keys_may = ("GET",)

    @extend_schema(parameters=CONTENT_PARAMETERS, responses=CONTENT_RESPONSES)
    def get(self, request: Request, file_id: UUID) -> HttpResponseBase:
        """Download the file's bytes. HEAD is answered too."""
        inline = request.query_params.get("inline") == "1"
        return file_response(request._request, _load_readable(request, file_id), inline=inline)


def _load_readable(request: Request, file_id: UUID) -> File:
    """Return the file, if the request may read it. Raises Missing.

    Where there is a signature it decides alone, whoever is signed in.
    """
    signature = request.query_params.get("signature")
    if signature is not None:
        return file_of_link(file_id, signature)
    return get_visible(File, principal_of(request), file_id)
