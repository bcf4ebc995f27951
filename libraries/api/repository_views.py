"""Serve the REST API of Git imports (docs/libraries.md): start, show, cancel and delete them."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.rest.bounded_fields import BoundedListField
from amber.lib.rest.wire import validate_body
from amber.lib.rest.wire_serializers import serializer_of
from libraries.git import services
from libraries.git.globs import MAX_WILDCARDS, count_wildcards
from libraries.models import Library, Repository
from libraries.wire import RepositoryWire, repository_wire

MAX_PATTERNS: Final = 100
MAX_PATTERN_CHARS: Final = 200


class PatternField(serializers.CharField):
    """A pattern of paths, as `libraries.git.globs` reads them."""

    def to_internal_value(self, data: Any) -> str:
        pattern = str(super().to_internal_value(data))
        if count_wildcards(pattern) > MAX_WILDCARDS:
            raise serializers.ValidationError(
                f"A pattern may have at most {MAX_WILDCARDS} wildcards (`*`, `**` and `?`)."
            )
        return pattern


class RepositoryInput(serializers.Serializer[Any]):
    git_url = serializers.CharField(max_length=2_000, help_text="Must begin with https://.")
    ref = serializers.RegexField(
        r"\A(?!-)[^\s~^:?*\[\\\x00-\x1f\x7f]*\Z",
        max_length=255,
        required=False,
        allow_blank=True,
        help_text="A branch, a tag or a commit; without it the default branch.",
    )
    token = serializers.CharField(
        max_length=2_000,
        required=False,
        allow_blank=True,
        write_only=True,
        help_text="An access token that may read the repository, or `name:token`. An empty one "
        "deletes the stored token.",
    )
    include = BoundedListField(
        child=PatternField(max_length=MAX_PATTERN_CHARS),
        max_length=MAX_PATTERNS,
        required=False,
        help_text="Patterns of paths, as in .gitignore. If empty, every readable file is imported.",
    )
    exclude = BoundedListField(
        child=PatternField(max_length=MAX_PATTERN_CHARS),
        max_length=MAX_PATTERNS,
        required=False,
    )


RepositorySerializer = serializer_of(RepositoryWire)


class RepositoriesView(GenericAPIView[Repository]):
    serializer_class = RepositorySerializer

    @extend_schema(responses=RepositorySerializer(many=True))
    def get(self, request: Request, library_id: UUID) -> Response:
        """List the repositories imported into this library, newest first, with their progress."""
        principal = principal_of(request)
        library = get_visible(Library, principal, library_id)
        rows = Repository.objects.visible_to(principal).filter(library=library)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(
            [repository_wire(repository) for repository in page or ()]
        )

    @extend_schema(
        request=RepositoryInput, responses={202: RepositorySerializer}, parameters=[IDEMPOTENCY_KEY]
    )
    def post(self, request: Request, library_id: UUID) -> Response:
        """Import a Git repository, or import it again: only what changed is indexed anew.

        409 `conflict` while an import of it is running. 400 `unsafe_address` for an address that is
        not public.
        """
        principal = principal_of(request)
        library = get_writable(Library, principal, library_id)
        fields = validate_body(RepositoryInput, request)
        return answer_once(
            request,
            lambda claim: services.start_import(
                library, user_id=principal.user_id, claim=claim, **fields
            ),
            repository_wire,
            status=lambda _: 202,
            body=fields,
        )


class RepositoryView(APIView):
    @extend_schema(responses=RepositorySerializer)
    def get(self, request: Request, import_id: UUID) -> Response:
        """Show an import and its progress."""
        return Response(repository_wire(get_visible(Repository, principal_of(request), import_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, import_id: UUID) -> Response:
        """Delete an import with its token; its documents are deleted in the background."""
        repository = get_writable(Repository, principal_of(request), import_id)
        services.delete_import(repository)
        return Response(status=204)


class CancelImportView(APIView):
    @extend_schema(request=None, responses=RepositorySerializer)
    def post(self, request: Request, import_id: UUID) -> Response:
        """Cancel an import. What was imported so far stays, and another import continues there."""
        repository = get_writable(Repository, principal_of(request), import_id)
        return Response(repository_wire(services.cancel_import(repository)))
