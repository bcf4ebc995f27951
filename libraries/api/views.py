"""Serve the REST API of libraries (docs/libraries.md): one view per address, one service per verb.

Documents, searches and imports have view modules of their own.
"""

from typing import Final, cast
from uuid import UUID

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.answers import answer_once
from accounts.api.group_views import NO_GROUP, SHARED_FILTERS, GrantsView, GrantView, shared_rows
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import (
    access_to,
    check_sharing,
    get_managed,
    get_visible,
    get_writable,
)
from accounts.tenant_rows import Right
from amber.lib.rest.wire import validate_body
from amber.lib.wire_fields import write_time
from libraries import services
from libraries.api.library_serializers import (
    IngestionSerializer,
    LibraryInput,
    LibrarySerializer,
    LibraryWithCounts,
)
from libraries.ingestion.overview import IngestionOverview, count_ended, overview_of
from libraries.models import DocumentStatus, Library
from libraries.wire import (
    DocumentCountsWire,
    IngestionStepsWire,
    IngestionWire,
    LibraryWithCountsWire,
    library_wire,
)

MODELS = ("embedding_model", "next_embedding_model")
SHARING: Final = ("shared", "default")
"""The fields that say who may use a library, and for what; `default` is its creator's."""


class LibrariesView(GenericAPIView[Library]):
    serializer_class = LibrarySerializer
    bound_keys_may = ("GET",)

    @extend_schema(
        parameters=SHARED_FILTERS,
        responses={200: LibrarySerializer(many=True), 404: NO_GROUP},
    )
    def get(self, request: Request) -> Response:
        """List the libraries that are yours, shared, or shared with a group of yours, newest
        first."""
        principal = principal_of(request)
        page = self.paginate_queryset(shared_rows(Library, request).select_related(*MODELS))
        return self.get_paginated_response(
            [library_wire(library, access_to(library, principal)) for library in page or ()]
        )

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
            lambda library: library_wire(library, Right.OWN),
            body=fields,
        )


class LibraryView(GenericAPIView[Library]):
    serializer_class = LibraryWithCounts
    bound_keys_may = ("GET",)

    def get(self, request: Request, library_id: UUID) -> Response:
        """Show a library, with its documents counted by status."""
        principal = principal_of(request)
        return Response(_library_to_wire(get_visible(Library, principal, library_id), principal))

    @extend_schema(request=LibraryInput)
    def patch(self, request: Request, library_id: UUID) -> Response:
        """Change a library. Its creator may, admins if it is shared, and groups that may edit it.

        Others who see it get 403, as do members of such groups for `shared` and `default`.
        The switch to another `embedding_model` happens in the background. New sizes apply to new
        documents, and to all documents after `reindex/`.
        """
        principal = principal_of(request)
        library = get_writable(Library, principal, library_id)
        changes = validate_body(LibraryInput, request, partial=True)
        check_sharing(library, principal, changes, names=SHARING)
        library = services.update_library(library, changes=changes, by=principal.actor)
        return Response(_library_to_wire(library, principal))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, library_id: UUID) -> Response:
        """Delete a library with all its documents, even during ingestion. Assistants stay.

        Its creator may, and admins if it is shared.
        """
        principal = principal_of(request)
        services.delete_library(get_managed(Library, principal, library_id), by=principal.actor)
        return Response(status=204)


class IngestionView(GenericAPIView[Library]):
    serializer_class = IngestionSerializer
    bound_keys_may = ("GET",)

    def get(self, request: Request, library_id: UUID) -> Response:
        """Show where a library's documents are in ingestion, and how fast it goes."""
        library = get_visible(Library, principal_of(request), library_id)
        documents = library.documents.all()
        overview = overview_of(documents, library.repositories.all(), ended=count_ended(documents))
        return Response(_ingestion_to_wire(overview))


class LibraryGrantsView(GrantsView):
    shared_model = Library
    id_name = "library_id"


class LibraryGrantView(GrantView):
    shared_model = Library
    id_name = "library_id"


class ReindexView(GenericAPIView[Library]):
    serializer_class = LibraryWithCounts

    @extend_schema(request=None, responses={202: LibraryWithCounts})
    def post(self, request: Request, library_id: UUID) -> Response:
        """Reindex all documents with the library's sizes. Until then, the old chunks are found."""
        principal = principal_of(request)
        library = services.reindex_library(get_writable(Library, principal, library_id))
        return Response(_library_to_wire(library, principal), status=202)


def _library_to_wire(library: Library, principal: Principal) -> LibraryWithCountsWire:
    rows = library.documents.values_list("status").annotate(n=Count("pk")).order_by()
    counts = dict.fromkeys(DocumentStatus.values, 0) | dict(rows)
    shown = library_wire(library, access_to(library, principal))
    return {**shown, "documents": cast("DocumentCountsWire", counts)}


def _ingestion_to_wire(overview: IngestionOverview) -> IngestionWire:
    return {
        "steps": cast("IngestionStepsWire", overview.steps),
        "put_off": overview.put_off,
        "documents_per_minute": overview.documents_per_minute,
        "chunks_per_minute": overview.chunks_per_minute,
        "mean_ms": overview.mean_ms,
        "oldest_waiting_at": write_time(overview.oldest_waiting_at),
    }
