"""Serve the REST API of libraries (docs/libraries.md): one view per address, one service per verb.

Documents, searches and imports have view modules of their own.
"""

from typing import cast
from uuid import UUID

from django.db.models import Count, Q
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.rest.wire import validate_body
from libraries import services
from libraries.api.library_serializers import LibraryInput, LibrarySerializer, LibraryWithCounts
from libraries.models import DocumentStatus, Library
from libraries.wire import DocumentCountsWire, LibraryWithCountsWire, library_wire

MODELS = ("embedding_model", "next_embedding_model")


class LibrariesView(GenericAPIView[Library]):
    serializer_class = LibrarySerializer
    bound_keys_may = ("GET",)

    @extend_schema(
        parameters=[OpenApiParameter("q", str, description="Text in the name or description.")],
        responses=LibrarySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the libraries of the organization that are yours or shared, newest first."""
        rows = Library.objects.visible_to(principal_of(request)).select_related(*MODELS)
        if words := request.query_params.get("q", "").strip():
            rows = rows.filter(Q(name__icontains=words) | Q(description__icontains=words))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response([library_wire(library) for library in page or ()])

    @extend_schema(
        request=LibraryInput, responses={201: LibrarySerializer}, parameters=[IDEMPOTENCY_KEY]
    )
    def post(self, request: Request) -> Response:
        """Create a library. 400 `unknown_model` for an embedding model that is not offered."""
        fields = validate_body(LibraryInput, request)
        return answer_once(
            request,
            lambda claim: services.create_library(
                principal_of(request), fields=fields, claim=claim
            ),
            library_wire,
            body=fields,
        )


class LibraryView(GenericAPIView[Library]):
    serializer_class = LibraryWithCounts
    bound_keys_may = ("GET",)

    def get(self, request: Request, library_id: UUID) -> Response:
        """Show a library, with its documents counted by status."""
        return Response(_library_to_wire(get_visible(Library, principal_of(request), library_id)))

    @extend_schema(request=LibraryInput)
    def patch(self, request: Request, library_id: UUID) -> Response:
        """Change a library. Its creator may, and admins if it is shared; 403 for other readers.

        The switch to another `embedding_model` happens in the background. New sizes apply to new
        documents, and to all documents after `reindex/`.
        """
        principal = principal_of(request)
        library = get_writable(Library, principal, library_id)
        changes = validate_body(LibraryInput, request, partial=True)
        library = services.update_library(library, changes=changes, by=principal.actor)
        return Response(_library_to_wire(library))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, library_id: UUID) -> Response:
        """Delete a library with all its documents, even during ingestion. Assistants stay."""
        principal = principal_of(request)
        services.delete_library(get_writable(Library, principal, library_id), by=principal.actor)
        return Response(status=204)


class ReindexView(GenericAPIView[Library]):
    serializer_class = LibraryWithCounts

    @extend_schema(request=None, responses={202: LibraryWithCounts})
    def post(self, request: Request, library_id: UUID) -> Response:
        """Reindex all documents with the library's sizes. Until then, the old chunks are found."""
        library = get_writable(Library, principal_of(request), library_id)
        return Response(_library_to_wire(services.reindex_library(library)), status=202)


def _library_to_wire(library: Library) -> LibraryWithCountsWire:
    rows = library.documents.values_list("status").annotate(n=Count("pk")).order_by()
    counts = dict.fromkeys(DocumentStatus.values, 0) | dict(rows)
    return {**library_wire(library), "documents": cast("DocumentCountsWire", counts)}
