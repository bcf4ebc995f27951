"""Serve the REST API of search (docs/retrieval.md): passages, and why each is where it is."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from amber.lib.errors import Missing
from amber.lib.rest.wire import validate_body
from libraries.api.search_serializers import FoundSerializer, LibrariesSearchInput, SearchInput
from libraries.models import Document, Library
from libraries.retrieval.passages import passage_wire
from libraries.retrieval.search import Filters, search


class LibrarySearchView(APIView):
    bound_keys_may = ("POST",)

    @extend_schema(request=SearchInput, responses=FoundSerializer)
    def post(self, request: Request, library_id: UUID) -> Response:
        """Search a library by words and by meaning. 404 if a named document is not in it."""
        principal = principal_of(request)
        libraries = _libraries(principal, [library_id])
        return _answer(principal, libraries, validate_body(SearchInput, request))


class LibrariesSearchView(APIView):
    bound_keys_may = ("POST",)

    @extend_schema(
        operation_id="libraries_search_together",
        request=LibrariesSearchInput,
        responses=FoundSerializer,
    )
    def post(self, request: Request) -> Response:
        """Search several libraries at once. 404 if you cannot see one of them."""
        principal = principal_of(request)
        given = validate_body(LibrariesSearchInput, request)
        libraries = _libraries(principal, given.pop("library_ids"))
        return _answer(principal, libraries, given)


def _libraries(principal: Principal, ids: Iterable[UUID]) -> list[Library]:
    """Return the libraries of these ids, by one query. Raises Missing if one is not visible."""
    wanted = set(ids)
    rows = Library.objects.visible_to(principal).filter(pk__in=wanted)
    libraries = list(rows.select_related("embedding_model__provider"))
    if len(libraries) < len(wanted):
        raise Missing
    return libraries


def _answer(principal: Principal, libraries: list[Library], given: dict[str, Any]) -> Response:
    filters = Filters(**given["filters"]) if given.get("filters") else None
    if filters and filters.document_ids:
        _check_documents(principal, libraries, set(filters.document_ids))
    found = search(
        libraries, given["query"], k=given["k"], filters=filters, user_id=principal.user_id
    )
    return Response({"results": list(map(passage_wire, found.passages)), "notes": found.notes})


def _check_documents(principal: Principal, libraries: list[Library], ids: set[UUID]) -> None:
    """Raise Missing for a foreign document, which is as absent as one that never was."""
    rows = Document.objects.visible_to(principal).filter(library__in=libraries, pk__in=ids)
    if rows.count() < len(ids):
        raise Missing
