"""Connect a tool's MCP server by OAuth: its owner's browser goes to a page there, and comes back.

What Amber must remember meanwhile lies encrypted in Redis, under the hash of the `state` that the
browser brings back, for ten minutes and for one use. Only the person who began can end it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson
from django.core.cache import cache

from accounts.principal import Principal
from amber.lib.database.connections import release_connections
from amber.lib.egress import FetchError
from amber.lib.errors import Invalid, blame_field
from amber.lib.secrets import DecryptError, SecretKeyError, decrypt, encrypt, sha256_hex
from tools.connections.connected import decrypt_key
from tools.connections.places import place_for
from tools.connections.refreshing import refresh
from tools.connections.tokens import store_tokens, uses_oauth
from tools.models import Tool

KEPT_SECONDS: Final = 600
WAIT_SECONDS: Final = 45.0
RETURN_PATH: Final = "/tools/connected"
MAX_CODE_CHARS: Final = 4_000
_PLACE: Final = "tools.connections.authorizing"

T = TypeVar("T")


def begin_connecting(tool: Tool, principal: Principal, *, returns_to: str) -> str:
    """Return the page that the owner's browser goes to; it comes back to `returns_to`.

    Raises Invalid, DiscoveryError, UnsafeAddress, FetchError.
    """
    from tools.mcp.authorization import WantedAuthorization, prepare

    if not uses_oauth(tool):
        text = 'This tool does not use OAuth. Set options.auth to {"type": "oauth"} first.'
        raise Invalid(text, fields={"options.auth": [text]})
    auth = tool.options["auth"]
    wanted = WantedAuthorization(
        returns_to=returns_to,
        client_id=auth.get("client_id", ""),
        client_secret=decrypt_key(tool),
        scope=auth.get("scope", ""),
    )
    with place_for(tool.organization_id):
        pending = _run(prepare(tool.discovery_url, wanted))
    kept = {"tool_id": str(tool.pk), "user_id": str(principal.user_id), **pending}
    name = sha256_hex(pending["state"])
    sealed = encrypt(
        orjson.dumps(kept).decode(),
        table=_PLACE,
        pk=name,
        organization_id=tool.organization_id,
    )
    cache.set(_key(name), [str(tool.organization_id), sealed], KEPT_SECONDS)
    return str(pending["page"])


def organization_of_state(state: str) -> UUID | None:
    """Return the organization in which somebody began to connect a tool with this state."""
    found = cache.get(_key(sha256_hex(state)))
    return UUID(found[0]) if found else None


def end_connecting(
    principal: Principal,
    *,
    state: str,
    code: str,
    issuer: str,
    find: Callable[[Principal, UUID], Tool],
) -> Tool:
    """Get the tokens, store them and ask the server what it offers; return the tool.

    `find` returns the tool, if the person may change it. Raises Invalid for a state that nobody began
    with, what `find` raises, DiscoveryError and FetchError.
    """
    from tools.mcp.authorization import TokenRefused, exchange

    pending = _taken(principal, state)
    is_named = bool(issuer) or pending["tells_issuer"]
    if is_named and issuer.rstrip("/") != pending["issuer"]:
        raise Invalid(
            "You were sent here by a different server than the one you started with. Start again."
        )
    tool = find(principal, UUID(pending["tool_id"]))
    if not uses_oauth(tool) or tool.discovery_url != pending["url"]:
        raise Invalid("The tool was changed in the meantime. Start again.")
    if not code or len(code) > MAX_CODE_CHARS:
        raise Invalid("The server refused access. Start again.")
    with place_for(tool.organization_id):
        try:
            tokens = _run(exchange(pending, code))
        except TokenRefused as refusal:
            raise Invalid(str(refusal)) from None
        store_tokens(tool.pk, tool.organization_id, tokens)
        refresh([tool])
    return tool


def _taken(principal: Principal, state: str) -> dict[str, Any]:
    """Return what was kept for this state, once. Raises Invalid."""
    refusal = Invalid(
        "This connection was not started by you, or was started more than ten minutes ago. Start again."
    )
    name = sha256_hex(state)
    found = cache.get(_key(name))
    if not state or found is None or found[0] != str(principal.organization_id):
        raise refusal
    try:
        opened = decrypt(found[1], table=_PLACE, pk=name, organization_id=principal.organization_id)
    except (DecryptError, SecretKeyError):
        raise refusal from None
    pending: dict[str, Any] = orjson.loads(opened)
    # Of two that bring the same state at once only one deletes it.
    if pending["user_id"] != str(principal.user_id) or not cache.delete(_key(name)):
        raise refusal
    return pending


def _key(name: str) -> str:
    return f"tool-connecting:{name}"


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for it, without a database connection. Raises AmberError."""
    release_connections()

    async def in_time() -> T:
        async with asyncio.timeout(WAIT_SECONDS):
            return await work

    try:
        with blame_field("discovery_url"):
            return asyncio.run(in_time())
    except TimeoutError:
        raise Invalid(FetchError("timeout").message) from None
