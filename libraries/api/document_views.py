"""Serve the REST API of documents and their chunks (docs/libraries.md): one view per address."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.errors import Conflict, Invalid
from amber.lib.rest.wire import StrictJSONParser, StrictMultiPartParser, validate_body
from libraries import services
from libraries.api.chunk_pages import ByOrder
from libraries.api.library_serializers import (
    ChunkSerializer,
    DocumentChanges,
    DocumentSerializer,
    DocumentText,
    DocumentTextSerializer,
    DocumentUpload,
    DocumentUrl,
)
from libraries.api.schema import DOCUMENT_FILTERS, NOT_FETCHED
from libraries.api.uploads import is_form, read_upload, refuse_long_form
from libraries.files.payload import Payload
from libraries.ingestion import document_services
from libraries.ingestion.document_services import status_of
from libraries.ingestion.intake import DocumentSource, PlacedDocument
from libraries.models import Document, DocumentChunk, DocumentStage, DocumentStatus, Library
from libraries.wire import DocumentWire, chunk_wire, document_wire

LARGE: Final = ("text", "pages")
_OTHER_LIBRARY: Final = (
    "Documents posted here go to your default library. Post yours to `libraries/{id}/documents/`."
)
_ONE_SOURCE: Final = "Send either `text` with a name, or `url`; send a file as a form."
_ADDED: Final[Mapping[str, Any]] = {
    "request": {
        "multipart/form-data": DocumentUpload,
        "application/json": PolymorphicProxySerializer(
            "DocumentGiven", [DocumentText, DocumentUrl], resource_type_field_name=None
        ),
    },
    "responses": {200: DocumentSerializer, 201: DocumentSerializer},
    "parameters": [IDEMPOTENCY_KEY],
}


class DocumentsView(GenericAPIView[Document]):
    serializer_class = DocumentSerializer
    parser_classes = [StrictJSONParser, StrictMultiPartParser]
    bound_keys_may = ("GET",)

    @extend_schema(parameters=DOCUMENT_FILTERS, responses=DocumentSerializer(many=True))
    def get(self, request: Request, library_id: UUID) -> Response:
        """List the library's documents, newest first."""
        principal = principal_of(request)
        library = get_visible(Library, principal, library_id)
        rows = Document.objects.visible_to(principal).filter(library=library).defer(*LARGE)
        page = self.paginate_queryset(rows.filter(**_read_filters(request.query_params)))
        return self.get_paginated_response([document_wire(document) for document in page or ()])

    @extend_schema(**_ADDED)
    def post(self, request: Request, library_id: UUID) -> Response:
        """Add a document to the library: upload a file, send a text, or name a URL to fetch.

        Answers 201 for a new document, and 200 for one that the library has already: it stays as it
        is if the content is the same, and is indexed anew if the content at its `path` is another.
        Images are refused.
        """
        return _add_document(request, get_writable(Library, principal_of(request), library_id))


class DefaultDocumentsView(APIView):
    parser_classes = [StrictJSONParser, StrictMultiPartParser]

    @extend_schema(**_ADDED)
    def post(self, request: Request) -> Response:
        """Add a document to your default library, which is created if there is none.

        A `library_id` is refused: documents of another library are posted to that library.
        """
        refuse_long_form(request)
        if "library_id" in request.data:
            raise Invalid(fields={"library_id": [_OTHER_LIBRARY]})
        return _add_document(request, services.default_library(principal_of(request)))


class DocumentView(GenericAPIView[Document]):
    serializer_class = DocumentSerializer
    bound_keys_may = ("GET",)

    def get(self, request: Request, document_id: UUID) -> Response:
        """Show a document: how far its ingestion is, and why it failed if it did."""
        return Response(document_wire(_load_document(request, document_id)))

    @extend_schema(request=DocumentChanges)
    def patch(self, request: Request, document_id: UUID) -> Response:
        """Change a document's name and metadata. 403 for those who may only read the library."""
        document = _writable_document(request, document_id)
        changes = validate_body(DocumentChanges, request, partial=True)
        return Response(document_wire(document_services.update_document(document, changes=changes)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, document_id: UUID) -> Response:
        """Delete a document with its chunks and its bytes, at any stage."""
        document_services.delete_document(_writable_document(request, document_id))
        return Response(status=204)


class DocumentTextView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(responses=DocumentTextSerializer)
    def get(self, request: Request, document_id: UUID) -> Response:
        """Show the text that was read from the document. 409 until there is one."""
        document = get_visible(Document, principal_of(request), document_id)
        if document.text is None:
            raise Conflict(document.error or "The document has not been read yet.")
        return Response({"text": document.text, "pages": document.pages})


class ChunksView(GenericAPIView[DocumentChunk]):
    serializer_class = ChunkSerializer
    pagination_class = ByOrder
    bound_keys_may = ("GET",)

    @extend_schema(responses=ChunkSerializer(many=True))
    def get(self, request: Request, document_id: UUID) -> Response:
        """List the document's chunks, which search finds, from its beginning."""
        principal = principal_of(request)
        document = _load_document(request, document_id)
        model_id = document.library.embedding_model_id
        rows = DocumentChunk.objects.visible_to(principal).defer("vector", "search")
        page = self.paginate_queryset(rows.filter(document=document, embedding_model=model_id))
        return self.get_paginated_response([chunk_wire(chunk) for chunk in page or ()])


class RetryView(APIView):
    @extend_schema(request=None, responses=DocumentSerializer)
    def post(self, request: Request, document_id: UUID) -> Response:
        """Retry a document that failed, was cancelled or waits. Any other stays as it is."""
        document = document_services.retry_document(_writable_document(request, document_id))
        return Response(document_wire(document))


class DocumentRefreshView(APIView):
    @extend_schema(request=None, responses={200: DocumentSerializer, **NOT_FETCHED})
    def post(self, request: Request, document_id: UUID) -> Response:
        """Fetch a document from its address again; if the content has changed, index it anew.

        409 `conflict` for a document that was not fetched from an address.
        """
        placed = document_services.refresh_document(_writable_document(request, document_id))
        return Response(document_wire(placed.document))


class DocumentCancelView(APIView):
    @extend_schema(request=None, responses=DocumentSerializer)
    def post(self, request: Request, document_id: UUID) -> Response:
        """Cancel a document's ingestion. What was searchable before stays searchable."""
        document = document_services.cancel_document(_writable_document(request, document_id))
        return Response(document_wire(document))


def _load_document(request: Request, document_id: UUID) -> Document:
    return get_visible(Document, principal_of(request), document_id, without=LARGE)


def _writable_document(request: Request, document_id: UUID) -> Document:
    return get_writable(Document, principal_of(request), document_id, without=LARGE)


def _add_document(request: Request, library: Library) -> Response:
    refuse_long_form(request)
    if not is_form(request):
        if ("url" in request.data) == ("text" in request.data):
            raise Invalid(fields={"text": [_ONE_SOURCE]})
        if "url" in request.data:
            return _add_from_url(request, library)
    given = _read_source(request)
    said = {"name": given.name, "path": given.path, "metadata": given.metadata}
    return answer_once(
        request,
        lambda claim: document_services.add_document(library, given, claim=claim),
        _wire,
        status=status_of,
        body=said | {"sha256": given.content_hash},
    )


def _add_from_url(request: Request, library: Library) -> Response:
    fields = validate_body(DocumentUrl, request)
    user_id = principal_of(request).user_id
    return answer_once(
        request,
        lambda claim: document_services.add_from_url(
            library, user_id=user_id, claim=claim, **fields
        ),
        _wire,
        status=status_of,
        body=fields,
    )


def _wire(placed: PlacedDocument) -> DocumentWire:
    return document_wire(placed.document)


def _read_source(request: Request) -> DocumentSource:
    """Return what the request brings: a form's file or a JSON text. Raises ValidationError."""
    data: bytes | Payload
    if is_form(request):
        fields = validate_body(DocumentUpload, request)
        upload = fields.pop("file")
        name, data = read_upload(upload)
        fields.setdefault("name", name)
        mime_type = upload.content_type or ""
    else:
        fields = validate_body(DocumentText, request)
        data, mime_type = fields.pop("text").encode(), "text/plain"
    return DocumentSource(
        data=data, mime_type=mime_type, user_id=principal_of(request).user_id, **fields
    )


def _read_filters(asked: Mapping[str, str]) -> dict[str, str]:
    """Translate the query parameters. Raises Invalid for an unknown status or stage."""
    known = {"status": DocumentStatus.values, "stage": DocumentStage.values}
    for name, values in known.items():
        if name in asked and asked[name] not in values:
            raise Invalid(fields={name: [f"Must be one of {', '.join(values)}."]})
    filters = {name: asked[name] for name in known if name in asked}
    if prefix := asked.get("path_prefix", ""):
        filters["path__startswith"] = prefix
    return filters
