"""Serve tools over REST (docs/tools.md): one view per address, one service per verb."""

from typing import Any, Final, cast
from uuid import UUID

from django.db.models import F, Func, JSONField, QuerySet, Value
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

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
from tools import services
from tools.api.serializers import (
    CallInput,
    CallRecordSerializer,
    ToolChanges,
    ToolInput,
    ToolSerializer,
    ToolSummarySerializer,
    TrialSerializer,
)
from tools.connections.trials import try_function
from tools.models import CallOutcome, Tool, ToolCallRecord
from tools.wire import ToolWire, call_wire, summary_wire, tool_wire

SHARING: Final = ("shared",)
"""The field that says who may use a tool."""


_PASTED: Final = OpenApiResponse(description="The tool was made from a pasted document.")


class ToolsView(GenericAPIView[Tool]):
    serializer_class = ToolSummarySerializer

    @extend_schema(
        parameters=SHARED_FILTERS,
        responses={200: ToolSummarySerializer(many=True), 404: NO_GROUP},
    )
    def get(self, request: Request) -> Response:
        """List the tools that are yours, shared, or shared with a group of yours, newest first."""
        principal = principal_of(request)
        rows = _with_names(shared_rows(Tool, request))
        page = cast("list[Any]", self.paginate_queryset(rows))
        return self.get_paginated_response(
            [summary_wire(row, row.names, access_to(row, principal)) for row in page]
        )

    @extend_schema(request=ToolInput, responses={201: ToolSerializer}, parameters=[IDEMPOTENCY_KEY])
    def post(self, request: Request) -> Response:
        """Add a tool. Its service is asked at once what it offers.

        Returns 400 `discovery_failed`, with the reasons by field, if the service cannot be used,
        and 400 `unsafe_address` for an address that is not public. No tool is then created.
        """
        principal = principal_of(request)
        given = validate_body(ToolInput, request)
        return answer_once(
            request,
            lambda claim: services.create_tool(principal, given=given, claim=claim),
            lambda tool: tool_wire(tool, Right.OWN),
        )


class ToolView(APIView):
    @extend_schema(responses=ToolSerializer)
    def get(self, request: Request, tool_id: UUID) -> Response:
        """Get a tool with all its functions and their schemas."""
        principal = principal_of(request)
        return Response(_tool_to_wire(get_visible(Tool, principal, tool_id), principal))

    @extend_schema(request=ToolChanges, responses=ToolSerializer)
    def patch(self, request: Request, tool_id: UUID) -> Response:
        """Change a tool. Its creator can, admins if it is shared, and groups that may edit it.

        Others who see it get 403, as do members of such groups for `shared`.
        The service is asked again if the address, the key or an option changes. The key is kept
        only while it goes to the origin it was given for.
        """
        principal = principal_of(request)
        tool = get_writable(Tool, principal, tool_id)
        changes = validate_body(ToolChanges, request, partial=True)
        check_sharing(tool, principal, changes, names=SHARING)
        changed = services.update_tool(tool, changes=changes, by=principal.actor)
        return Response(_tool_to_wire(changed, principal))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, tool_id: UUID) -> Response:
        """Delete a tool with its call log. Its creator can, and admins if it is shared. Assistants
        no longer use it."""
        principal = principal_of(request)
        services.delete_tool(get_managed(Tool, principal, tool_id), by=principal.actor)
        return Response(status=204)


class ToolGrantsView(GrantsView):
    shared_model = Tool
    id_name = "tool_id"


class ToolGrantView(GrantView):
    shared_model = Tool
    id_name = "tool_id"


class ToolRefreshView(APIView):
    @extend_schema(request=None, responses={200: ToolSerializer, 400: _PASTED})
    def post(self, request: Request, tool_id: UUID) -> Response:
        """Ask the service again what it offers. `last_error` says why if that fails."""
        principal = principal_of(request)
        tool = services.refresh_tool(get_writable(Tool, principal, tool_id))
        return Response(_tool_to_wire(tool, principal))


class CallView(APIView):
    @extend_schema(request=CallInput, responses=TrialSerializer)
    def post(self, request: Request, tool_id: UUID) -> Response:
        """Try a function with these arguments. It is really called, and the requests are shown."""
        principal = principal_of(request)
        tool = get_writable(Tool, principal, tool_id)
        given = validate_body(CallInput, request)
        trial = try_function(
            tool,
            principal,
            function=given["function"],
            arguments=given.get("arguments", {}),
        )
        return Response(TrialSerializer(trial).data)


class CallsView(GenericAPIView[ToolCallRecord]):
    serializer_class = CallRecordSerializer

    @extend_schema(
        parameters=[OpenApiParameter("outcome", str, enum=CallOutcome.values)],
        responses=CallRecordSerializer(many=True),
    )
    def get(self, request: Request, tool_id: UUID) -> Response:
        """List the tool's calls, newest first: how each went, but not its arguments or result."""
        principal = principal_of(request)
        tool = get_writable(Tool, principal, tool_id)
        rows = ToolCallRecord.objects.visible_to(principal).filter(tool=tool)
        if outcome := request.query_params.get("outcome", ""):
            rows = rows.filter(outcome=outcome)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response([call_wire(record) for record in page or ()])


def _tool_to_wire(tool: Tool, principal: Principal) -> ToolWire:
    return tool_wire(tool, access_to(tool, principal))


def _with_names(rows: QuerySet[Tool]) -> QuerySet[Tool]:
    """Annotate each tool with `names`, those of its functions, without loading their schemas."""
    names = Func(
        F("data"),
        Value("$.functions[*].name"),
        function="jsonb_path_query_array",
        template="%(function)s(%(expressions)s::jsonpath)",
        output_field=JSONField(),
    )
    return rows.defer("data").annotate(names=names)
