"""Get tokens for an MCP server that wants OAuth 2.1, in two steps: `prepare`, then `exchange`.

    pending = await prepare(url, wanted)          # its owner's browser goes to pending["page"]
    tokens = await exchange(pending, code)
    tokens = await renew(tokens)

https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization: the server's metadata
name its authorization server, where Amber registers itself unless the owner did. Addresses and
forms are the official SDK's; every request goes through the guarded client. A challenge of S256 is
always sent, and the server's address as the resource, so that its tokens are good for it alone.

Knows no row. What it returns holds secrets: it is stored encrypted, and never logged.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    validate_metadata_issuer,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ValidationError

from amber.lib.egress import FetchError, FetchLimits, Response, fetch, installation_policy
from tools.source import DiscoveryError

LIMITS: Final = FetchLimits(max_bytes=200_000)
DEFAULT_SECONDS: Final = 3_600
"""How long a token is good whose server does not say."""

MAX_SCOPE_CHARS: Final = 2_000
_PROBE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "Amber", "version": "1"},
    },
}

Json = dict[str, Any]
ModelT = TypeVar("ModelT", bound=BaseModel)


class TokenRefused(Exception):
    """The authorization server gives out no token any more; the text is for the tool's owner."""


@dataclass(frozen=True, slots=True)
class WantedAuthorization:
    """What the tool's owner says. An empty `client_id`: Amber registers itself."""

    returns_to: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""


async def prepare(url: str, wanted: WantedAuthorization) -> Json:
    """Find out where to get tokens, and return all that `exchange` needs.

    `page` in it is where the owner's browser goes, `state` what it brings back. Raises
    DiscoveryError, UnsafeAddress, FetchError.
    """
    first = await _probe(url)
    resource = await _resource(first, url)
    server = await _server(resource, url)
    _check_page(str(server.authorization_endpoint))
    client = await _client(server, wanted)
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    named = str(resource.resource).rstrip("/") if resource else url
    asked = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": wanted.returns_to,
        "state": state,
        "code_challenge": challenge.decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": named,
    }
    if scope := _scope(first, resource, wanted):
        asked["scope"] = scope
    page = str(server.authorization_endpoint)
    return {
        "page": f"{page}{'&' if '?' in page else '?'}{urlencode(asked)}",
        "state": state,
        "verifier": verifier,
        "returns_to": wanted.returns_to,
        "issuer": str(server.issuer).rstrip("/"),
        "tells_issuer": server.authorization_response_iss_parameter_supported is True,
        "token_endpoint": str(server.token_endpoint),
        "resource": named,
        "url": url,
        **client,
    }


async def exchange(pending: Mapping[str, Any], code: str) -> Json:
    """Return tokens for the code that the owner's browser brought. Raises TokenRefused, FetchError."""
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending["returns_to"],
        "code_verifier": pending["verifier"],
    }
    return await _ask_for_tokens(pending, fields)


async def renew(tokens: Mapping[str, Any]) -> Json:
    """Return new tokens. Raises TokenRefused, FetchError."""
    fields = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    return await _ask_for_tokens(tokens, fields)


async def _ask_for_tokens(known: Mapping[str, Any], fields: Mapping[str, str]) -> Json:
    form = {**fields, "resource": known["resource"]}
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    if known["method"] == "client_secret_basic":
        pair = f"{quote_plus(known['client_id'])}:{quote_plus(known['client_secret'])}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = known["client_id"]
        if known["client_secret"]:
            form["client_secret"] = known["client_secret"]
    answer = await fetch(
        "POST",
        known["token_endpoint"],
        headers=headers,
        content=urlencode(form).encode(),
        limits=LIMITS,
    )
    # No refusal, after which the tokens would be thrown away.
    if answer.status >= 500 or answer.status == 429:
        raise FetchError("unreachable")
    token = _read(answer, OAuthToken) if answer.is_success else None
    if token is None or token.token_type.lower() != "bearer" or not token.access_token:
        raise TokenRefused("The authorization server issued no token. Connect the tool again.")
    seconds = token.expires_in if token.expires_in is not None else DEFAULT_SECONDS
    kept = ("token_endpoint", "client_id", "client_secret", "method", "resource", "url")
    return {
        **{name: known[name] for name in kept},
        "access_token": token.access_token,
        "refresh_token": token.refresh_token or known.get("refresh_token", ""),
        "expires_at": time.time() + max(0, seconds),
    }


# -- Finding out -------------------------------------------------------------------------------


async def _probe(url: str) -> Any:
    """Return what the server answers to somebody without a token, in the SDK's terms."""
    answer = await fetch(
        "POST",
        url,
        headers={"Accept": "application/json, text/event-stream"},
        json=_PROBE,
        limits=LIMITS,
    )
    return httpx2.Response(answer.status, headers=list(answer.headers.items()))


async def _resource(first: Any, url: str) -> ProtectedResourceMetadata | None:
    """Return the server's metadata; None for one that has none. Raises DiscoveryError."""
    told = extract_resource_metadata_from_www_auth(first)
    places = build_protected_resource_metadata_discovery_urls(told, url)
    found = await _first(places, ProtectedResourceMetadata)
    if found is None:
        return None
    if not _is_within(url, str(found.resource)):
        raise _fault("Its metadata are those of another server.")
    return found


async def _server(resource: ProtectedResourceMetadata | None, url: str) -> OAuthMetadata:
    """Return the metadata of the authorization server. Raises DiscoveryError."""
    named = str(resource.authorization_servers[0]) if resource else None
    places = build_oauth_authorization_server_metadata_discovery_urls(named, url)
    found = await _first(places, OAuthMetadata)
    if found is None:
        raise _fault("It does not say where to get a token by OAuth.")
    if named is not None:
        try:
            validate_metadata_issuer(found, named)
        except OAuthFlowError:
            raise _fault("Its authorization server says that it is another one.") from None
    methods = found.code_challenge_methods_supported
    if methods is not None and "S256" not in methods:
        raise _fault("Its authorization server takes no challenge of S256 (PKCE).")
    return found


async def _client(server: OAuthMetadata, wanted: WantedAuthorization) -> Json:
    """Return the client to be there: the owner's, or a new one. Raises DiscoveryError."""
    supported = server.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    if wanted.client_id:
        method = _method(supported) if wanted.client_secret else "none"
        secret = wanted.client_secret
        return {"client_id": wanted.client_id, "client_secret": secret, "method": method}
    if server.registration_endpoint is None:
        raise _fault(
            "Applications cannot register themselves there. Register Amber by hand, with the address "
            f"{wanted.returns_to}, and enter the client's id in options.auth.client_id."
        )
    about: Json = {
        "client_name": "Amber",
        "redirect_uris": [wanted.returns_to],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none" if "none" in supported else _method(supported),
    }
    if wanted.scope:
        about["scope"] = wanted.scope
    answer = await fetch(
        "POST",
        str(server.registration_endpoint),
        headers={"Accept": "application/json"},
        json=about,
        limits=LIMITS,
    )
    made = _read(answer, OAuthClientInformationFull) if answer.is_success else None
    if made is None or not made.client_id:
        raise _fault(f"It refused to register Amber (status {answer.status}).")
    method = made.token_endpoint_auth_method or about["token_endpoint_auth_method"]
    secret = made.client_secret or ""
    return {"client_id": made.client_id, "client_secret": secret, "method": str(method)}


def _method(supported: Sequence[str]) -> str:
    return "client_secret_post" if "client_secret_post" in supported else "client_secret_basic"


def _scope(
    first: Any, resource: ProtectedResourceMetadata | None, wanted: WantedAuthorization
) -> str:
    listed = " ".join((resource.scopes_supported if resource else None) or [])
    return (wanted.scope or extract_scope_from_www_auth(first) or listed)[:MAX_SCOPE_CHARS]


async def _first(places: Sequence[str], kind: type[ModelT]) -> ModelT | None:
    """Return the first of these documents that there is."""
    for place in dict.fromkeys(places):
        answer = await fetch("GET", place, headers={"Accept": "application/json"}, limits=LIMITS)
        if answer.is_success and (found := _read(answer, kind)) is not None:
            return found
    return None


def _read(answer: Response, kind: type[ModelT]) -> ModelT | None:
    try:
        return kind.model_validate(answer.json())
    except (ValidationError, FetchError):
        return None


def _check_page(page: str) -> None:
    """Raise DiscoveryError, UnsafeAddress for a page that a browser should not be sent to."""
    if urlsplit(page).fragment:
        raise _fault("Its page to let applications in is no plain address.")
    installation_policy().check_url(page)


def _is_within(url: str, resource: str) -> bool:
    called, named = urlsplit(url), urlsplit(resource)
    path = named.path.rstrip("/")
    is_same = (called.scheme, called.netloc.lower()) == (named.scheme, named.netloc.lower())
    return is_same and (called.path.rstrip("/") == path or called.path.startswith(f"{path}/"))


def _fault(words: str) -> DiscoveryError:
    text = f"The server cannot be connected by OAuth. {words}"
    return DiscoveryError(text, fields={"discovery_url": [text]})
