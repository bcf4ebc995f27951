"""Keep the tokens of a tool that is connected by OAuth: encrypted in its row, renewed when they end.

    connection.renew = renewal_of(tool)      # `await renew(stale)` returns a token that is good

A token goes to the address it was given for and to no other. Of calls at once one renews, and the
others wait for what it gets: refresh tokens are often good once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any, Final
from uuid import UUID

import orjson
import structlog
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.database.connections import in_thread
from amber.lib.database.tenant import for_whole_organization
from amber.lib.egress import FetchError, UnsafeAddress
from amber.lib.secrets import DecryptError, SecretKeyError, decrypt_column, encrypt_column
from tools.models import Tool
from tools.outgoing.auth import CredentialError

logger = structlog.get_logger(__name__)

EARLY_SECONDS: Final = 30
"""A token that ends sooner is renewed before it is used."""

LOCK_SECONDS: Final = 30
WAIT_SECONDS: Final = 15.0
STEP_SECONDS: Final = 0.25
NOT_CONNECTED: Final = (
    "The tool is not connected. Its owner connects it: POST tools/{id}/connect/ names the page."
)

Tokens = dict[str, Any]
Renewal = Callable[[str], Awaitable[str]]


def uses_oauth(tool: Tool) -> bool:
    auth = tool.options.get("auth")
    return isinstance(auth, dict) and auth.get("type") == "oauth"


def renewal_of(tool: Tool) -> Renewal:
    """Return what gives a token for the tool's address: never the one that was refused (`stale`)."""
    return partial(_token, tool.pk, tool.organization_id, tool.discovery_url)


async def _token(tool_id: UUID, organization_id: UUID, url: str, stale: str) -> str:
    """Return an access token. Raises CredentialError."""

    async def load() -> Tokens:
        return await in_thread(_load, tool_id, organization_id, url)

    tokens = await load()
    if _is_good(tokens, stale):
        return str(tokens["access_token"])
    if not tokens["refresh_token"]:
        raise CredentialError(NOT_CONNECTED)
    name = _lock_key(organization_id, tool_id)
    if not await in_thread(_take, name):
        return await _wait(load, stale)
    try:
        tokens = await load()  # another may have renewed it since
        if not _is_good(tokens, stale):
            tokens = await _renew(tool_id, organization_id, tokens)
        return str(tokens["access_token"])
    finally:
        await in_thread(_release, name)


def _is_good(tokens: Tokens, stale: str) -> bool:
    lasts = tokens["expires_at"] - time.time() > EARLY_SECONDS
    return tokens["access_token"] != stale and (lasts or not tokens["refresh_token"])


async def _wait(load: Callable[[], Awaitable[Tokens]], stale: str) -> str:
    """Return the token that another call gets. Raises CredentialError."""
    ends_at = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends_at:
        await asyncio.sleep(STEP_SECONDS)
        tokens = await load()
        if _is_good(tokens, stale):
            return str(tokens["access_token"])
    raise CredentialError("The tool's token could not be renewed in time. Try again.")


async def _renew(tool_id: UUID, organization_id: UUID, tokens: Tokens) -> Tokens:
    """Renew the tokens and store them. Raises CredentialError."""
    await asyncio.to_thread(import_module, "tools.mcp.authorization")  # with the SDK 0.3 s
    from tools.mcp.authorization import TokenRefused, renew

    try:
        new = await renew(tokens)
    except TokenRefused as refusal:
        await in_thread(store_tokens, tool_id, organization_id, None)
        raise CredentialError(str(refusal)) from None
    except (FetchError, UnsafeAddress) as error:
        raise CredentialError(f"The tool's token could not be renewed. {error.message}") from None
    await in_thread(store_tokens, tool_id, organization_id, new)
    return new


def _load(tool_id: UUID, organization_id: UUID, url: str) -> Tokens:
    """Return the tokens for this address. Raises CredentialError."""
    with for_whole_organization():  # a turn uses its assistant's tools, whoever asks
        rows = Tool.objects.filter(pk=tool_id, organization_id=organization_id)
        tool = rows.only("organization_id", "oauth_sealed").first()
    if tool is None or not tool.oauth_sealed:
        raise CredentialError(NOT_CONNECTED)
    try:
        tokens: Tokens = orjson.loads(decrypt_column(tool, "oauth"))
    except (DecryptError, SecretKeyError):
        raise CredentialError("The tool's tokens cannot be read. Connect it again.") from None
    if tokens["url"] != url:
        raise CredentialError(NOT_CONNECTED)
    return tokens


def store_tokens(tool_id: UUID, organization_id: UUID, tokens: Tokens | None) -> None:
    """Write the tokens into the tool's row; None disconnects it."""
    tool = Tool(pk=tool_id, organization_id=organization_id)
    encrypt_column(tool, "oauth", orjson.dumps(tokens).decode() if tokens else "")
    with for_whole_organization():
        Tool.objects.filter(pk=tool_id).update(oauth_sealed=tool.oauth_sealed)


def _lock_key(organization_id: UUID, tool_id: UUID) -> bytes:
    return amber_redis.key("tool-token", organization_id, tool_id)


def _take(name: bytes) -> bool:
    try:
        return bool(amber_redis.client().set(name, "1", nx=True, ex=LOCK_SECONDS))
    except (RedisError, OSError):
        return True  # without Redis calls may renew twice; one of them then connects anew


def _release(name: bytes) -> None:
    try:
        amber_redis.client().delete(name)
    except (RedisError, OSError) as error:
        logger.warning("token_lock_not_released", reason=type(error).__name__)
