"""Serve the REST API of one's own memories (docs/memory.md): one view per address."""

from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.principal import Principal
from accounts.registry import sees_assistant
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.errors import Invalid
from amber.lib.json_text.stream import in_batches, json_response
from amber.lib.rest.wire import validate_body
from memory import services
from memory.api.serializers import (
    ExportedMemoriesSerializer,
    ForgottenSerializer,
    FoundMemoriesSerializer,
    MemoryChanges,
    MemoryInput,
    MemoryQuery,
    MemorySerializer,
)
from memory.facts.facts import Fact
from memory.models import Memory
from memory.owner import Owner
from memory.recall.embedding import embedded_or_none
from memory.recall.recall import search
from memory.wire import memory_wire

LARGE: Final = ("vector", "search")
_OF_ASSISTANT: Final = OpenApiParameter(
    "assistant_id", OpenApiTypes.UUID, description="Only memories kept for this assistant alone."
)


class MemoriesView(GenericAPIView[Memory]):
    serializer_class = MemorySerializer
    bound_keys_may = ("GET",)

    @extend_schema(
        parameters=[
            OpenApiParameter("all", str, enum=["true"], description="Include superseded ones."),
            _OF_ASSISTANT,
        ],
        responses=MemorySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List what is remembered about you, newest first."""
        rows = _mine(principal_of(request))
        if not _flag(request, "all"):
            rows = rows.filter(valid_until__isnull=True)
        if assistant_id := _assistant_id(request):
            rows = rows.filter(assistant_id=assistant_id)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response([memory_wire(memory) for memory in page or ()])

    @extend_schema(
        request=MemoryInput,
        responses={200: MemorySerializer, 201: MemorySerializer},
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request) -> Response:
        """Add a memory. 200 with the existing memory if one says the same already."""
        principal = principal_of(request)
        given = validate_body(MemoryInput, request)
        owner = Owner.of(principal)
        fact = Fact(given["content"], assistant_id=_scope(principal, given.get("assistant_id")))
        return answer_once(
            request,
            lambda claim: services.add_memory(
                owner, fact, embedded=embedded_or_none(fact.content, owner=owner), claim=claim
            ),
            lambda added: memory_wire(added[0]),
            status=services.status_of,
        )

    @extend_schema(
        operation_id="memories_forget_all",
        parameters=[OpenApiParameter("confirm", str, enum=["true"], required=True)],
        responses={200: ForgottenSerializer},
    )
    def delete(self, request: Request) -> Response:
        """Forget everything, also superseded memories, for good. Needs `?confirm=true`."""
        if not _flag(request, "confirm"):
            said = "This forgets everything. Add ?confirm=true to confirm it."
            raise Invalid(said, fields={"confirm": [said]})
        principal = principal_of(request)
        deleted = services.forget_all(Owner.of(principal), assistant_id=principal.assistant_id)
        return Response({"deleted": deleted})


class MemoryView(GenericAPIView[Memory]):
    serializer_class = MemorySerializer
    bound_keys_may = ("GET",)

    def get(self, request: Request, memory_id: UUID) -> Response:
        """Show a memory."""
        memory = get_visible(Memory, principal_of(request), memory_id, without=LARGE)
        return Response(memory_wire(memory))

    @extend_schema(request=MemoryChanges)
    def patch(self, request: Request, memory_id: UUID) -> Response:
        """Put a memory in your own words. 409 for one that was superseded."""
        principal = principal_of(request)
        memory = get_writable(Memory, principal, memory_id, without=LARGE)
        content = validate_body(MemoryChanges, request)["content"]
        embedded = embedded_or_none(content, owner=Owner.of(principal))
        return Response(
            memory_wire(services.edit_memory(memory, content=content, embedded=embedded))
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Forget a memory, and those it superseded."""
        services.forget_memory(
            get_writable(Memory, principal_of(request), memory_id, without=LARGE)
        )
        return Response(status=204)


class MemorySearchView(APIView):
    bound_keys_may = ("POST",)

    @extend_schema(request=MemoryQuery, responses=FoundMemoriesSerializer)
    def post(self, request: Request) -> Response:
        """Search the memories an assistant would be told for a question, best first."""
        principal = principal_of(request)
        given = validate_body(MemoryQuery, request)
        owner = Owner.of(principal)
        found = search(
            owner,
            given["query"],
            limit=given["k"],
            only_assistant_id=principal.assistant_id,
            embedded=embedded_or_none(given["query"], owner=owner),
        )
        results = [
            {"memory": memory_wire(memory), "relevance": round(relevance, 3)}
            for memory, relevance in found.items()
        ]
        return Response({"results": results})


class MemoryExportView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(responses=ExportedMemoriesSerializer)
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export all your memories, superseded ones too, as one JSON document."""
        rows = _mine(principal_of(request))
        return json_response({"memories": in_batches(rows, memory_wire)}, filename="memories.json")


def _mine(principal: Principal) -> QuerySet[Memory]:
    rows: QuerySet[Memory] = Memory.objects.visible_to(principal).defer(*LARGE)
    return rows


def _scope(principal: Principal, assistant_id: UUID | None) -> UUID | None:
    """Return the assistant that a new memory is for, or None for all. Raises Invalid.

    What is added with a key of one assistant is kept for that assistant.
    """
    if principal.assistant_id is not None:
        assistant_id = assistant_id or principal.assistant_id
    if assistant_id is not None and not sees_assistant(principal, assistant_id):
        raise Invalid(fields={"assistant_id": ["There is no such assistant."]})
    return assistant_id


def _flag(request: Request, name: str) -> bool:
    """Read a query parameter that is true or false; false without it. Raises Invalid."""
    given = request.query_params.get(name)
    if given not in (None, "true", "false"):
        raise Invalid(fields={name: ["Must be true or false."]})
    return given == "true"


def _assistant_id(request: Request) -> UUID | None:
    """Read the id of an assistant from the query, or None. Raises Invalid."""
    given = request.query_params.get("assistant_id")
    try:
        return UUID(given) if given else None
    except ValueError:
        raise Invalid(fields={"assistant_id": ["Must be a UUID."]}) from None
