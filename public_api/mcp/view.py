"""Serve the MCP server at /mcp, over streamable HTTP, for keys and for applications of OAuth.

Sessions of the browser are not looked at. A page may ask only if it is Amber's own, trusted, or one
of the key's: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports.
"""

from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.models import Scope, User
from accounts.principal import Principal
from accounts.sign_in.authentication import PrincipalAuthentication, principal_of
from amber.lib.errors import Forbidden, TooLarge
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.wire import parse_object
from public_api.mcp.exchange import answer_by, scope_of
from public_api.mcp.metadata import challenge

MAX_BODY_BYTES: Final = 1_000_000


class McpAuthentication(PrincipalAuthentication):
    scope = Scope.MCP
    for_applications = True

    def authenticate(self, request: Request) -> tuple[User | None, Principal] | None:
        """Authenticate by key or token. Raises Forbidden for a page of another origin."""
        if "Authorization" not in request.headers:
            return None
        found = super().authenticate(request)
        origin = request.headers.get("Origin")
        if found is not None and origin is not None and not _may_ask(origin, request, found[1]):
            raise Forbidden("This address may not be used from pages of this origin.")
        return found


def _may_ask(origin: str, request: Request, principal: Principal) -> bool:
    own = {settings.AMBER_PUBLIC_URL, f"{request.scheme}://{request.get_host()}"}
    known = {*own, *settings.CORS_ALLOWED_ORIGINS}
    if principal.key is not None:
        known |= set(principal.key.origins)
    return origin in known or (_host_of(origin) in _OWN_MACHINE and _is_local(request))


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:  # no origin of a browser
        return None


_OWN_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def _is_local(request: Request) -> bool:
    return urlsplit(f"//{request.get_host()}").hostname in _OWN_MACHINE


class AnyContent(BaseContentNegotiation):
    """Leaves `Accept` to the protocol's own rules."""

    def select_parser(self, request: Request, parsers: Any) -> BaseParser | None:
        return None

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class McpView(APIView):
    authentication_classes = [McpAuthentication]
    content_negotiation_class = AnyContent
    bound_keys_may = ("POST",)

    @extend_schema(exclude=True)  # JSON-RPC, described by the protocol
    def post(self, request: Request) -> DeferredResponse:
        """Answer one message of the protocol. Nothing is remembered between two."""
        principal = principal_of(request)
        body = request._request.body
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"A message may have at most {MAX_BODY_BYTES:,} bytes.")
        parse_object(body)  # as all bodies: bounded in depth, with what can be stored
        return DeferredResponse(partial(_answer, principal, scope_of(request._request), body))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Tell applications without a valid token where to get one."""
        if response.status_code == 401:
            is_invalid = "Authorization" in request.headers
            response["WWW-Authenticate"] = challenge(request._request, is_invalid=is_invalid)
        return super().finalize_response(request, response, *args, **kwargs)


async def _answer(principal: Principal, scope: Any, body: bytes) -> Any:
    from public_api.mcp.server import handle

    return await answer_by(partial(handle, principal), scope, body)
