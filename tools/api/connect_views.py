"""Connect tools by OAuth over REST and a page: the owner goes to the server's page, and comes back."""

from functools import partial
from typing import Final, TypedDict
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.sign_in.applications import root_of
from accounts.sign_in.authentication import HasPrincipal, InPerson, principal_in, principal_of
from accounts.tenancy.access import get_managed, get_writable
from amber.lib.errors import AmberError, Invalid
from amber.lib.rest.wire_serializers import serializer_of
from tools.connections.authorizing import (
    RETURN_PATH,
    begin_connecting,
    end_connecting,
    organization_of_state,
)
from tools.connections.tokens import store_tokens
from tools.models import Tool


class ConnectionWire(TypedDict):
    authorization_url: str


ConnectionSerializer = serializer_of(ConnectionWire)
_NOT_BEGUN: Final = OpenApiResponse(
    description="The tool does not use OAuth, or its server cannot be asked how."
)


class ConnectView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=None, responses={200: ConnectionSerializer, 400: _NOT_BEGUN})
    def post(self, request: Request, tool_id: UUID) -> Response:
        """Begin to connect a tool by OAuth. Open `authorization_url` in your browser: its server asks
        there whether Amber may come in, and sends you back."""
        principal = principal_of(request)
        tool = get_writable(Tool, principal, tool_id)
        page = begin_connecting(
            tool, principal, returns_to=f"{root_of(request._request)}{RETURN_PATH}"
        )
        return Response({"authorization_url": page})

    @extend_schema(responses={204: None})
    def delete(self, request: Request, tool_id: UUID) -> Response:
        """Disconnect a tool: its tokens are deleted. Its creator can, and admins if it is shared."""
        tool = get_managed(Tool, principal_of(request), tool_id)
        store_tokens(tool.pk, tool.organization_id, None)
        return Response(status=204)


class ConnectedView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(exclude=True)  # a page for browsers
    def get(self, request: Request) -> HttpResponse:
        """Take you back from a server's page, and show whether your tool is connected."""
        given = request.query_params
        try:
            principal = principal_of(request)
            state = given.get("state", "")
            organization_id = organization_of_state(state)
            if organization_id is None:
                raise Invalid(
                    "This connection was not started by you, or was started more than ten minutes ago. Start again."
                )
            principal = principal_in(principal, organization_id)
            tool = end_connecting(
                principal,
                state=state,
                code=given.get("code", ""),
                issuer=given.get("iss", ""),
                find=partial(get_writable, Tool),
            )
        except AmberError as error:
            shown = {"words": error.message}
            return render(request._request, "tools/connected.html", shown, status=error.status)
        count = len(tool.data.get("functions", ()))
        shown_tool = {"tool": tool, "count": count, "fault": tool.last_error}
        return render(request._request, "tools/connected.html", shown_tool)
