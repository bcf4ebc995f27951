"""Hold one short session with an MCP server over streamable HTTP: list its tools, or call one.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports, by the official SDK. Each
session is a task of its own, so that nothing of the SDK's task groups reaches the caller: when the
caller is cancelled or out of time, the line is cut and the sockets are closed, whatever the SDK is
waiting for. Answers come back as plain JSON; the SDK's types stay here.

The SDK takes 33 MB and 0.3 s to import, so only `tools.mcp.source` imports this module, and only
when a server is to be asked.

What servers may ask of a client (sampling, elicitation, roots) is refused. Results are not checked
against the server's own schemas, as their patterns may run for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import httpx2
import mcp_types
from django.conf import settings
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from amber.lib.egress import FetchError, UnsafeAddress, installation_policy
from tools.mcp.terms import McpServer, ServerListing, SessionFault
from tools.mcp.transport import Line

T = TypeVar("T")

MAX_PAGES: Final = 50
FAREWELL_SECONDS: Final = 0.5
"""How long a session that is given up may still send its goodbye, two messages on open
connections, before its sockets are closed."""

MAX_WORDS_CHARS: Final = 500
"""The most of a server's own words that an error repeats."""

MORE_INPUT: Final = (
    "the tool asks for more input during the call, which nobody can give here. Ask the user, and give "
    "it with the arguments if they have a place for it."
)
_SESSION_NOT_FOUND: Final = 404
_MAX_SHOWN_FIELDS: Final = 20
_CALL_RESULT: TypeAdapter[Any] = TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)


async def list_tools(server: McpServer, *, seconds: float) -> ServerListing:
    """List the server's tools, at most MAX_PAGES pages. Raises SessionFault."""

    async def talk(client: Client) -> ServerListing:
        tools: list[dict[str, Any]] = []
        cursor, is_cut = None, False
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [_plain(tool) for tool in page.tools]
            if not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        else:
            is_cut = True
        about = client.server_info
        return ServerListing(
            name=(about.title or about.name) if about else "",
            instructions=client.instructions or "",
            protocol_version=client.protocol_version or "",
            tools=tools,
            is_cut=is_cut,
        )

    return await _in_session(server, talk, seconds)


async def call_tool(
    server: McpServer, name: str, arguments: Mapping[str, Any], *, seconds: float
) -> dict[str, Any]:
    """Call a tool and return the result as the server gave it. Raises SessionFault.

    If the server no longer knows the session, as it restarted in between, the call is made once
    more in a new one: a 404 says that the call was not made.
    """

    async def talk(client: Client) -> dict[str, Any]:
        return await _call(client, name, arguments)

    try:
        return await _in_session(server, talk, seconds)
    except SessionFault as fault:
        if fault.status != _SESSION_NOT_FOUND or not fault.has_called:
            raise
    return await _in_session(server, talk, seconds)


async def _call(client: Client, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Send the call directly: `client.call_tool` would list all tools to check the result."""
    request = mcp_types.CallToolRequest(
        params=mcp_types.CallToolRequestParams(name=name, arguments=dict(arguments))
    )
    try:
        result = await client.session.send_request(request, _CALL_RESULT)
    except MCPError as error:
        if error.code != mcp_types.HEADER_MISMATCH:
            raise
        # The server refused the call unread, as arguments that its schema wants in headers were
        # missing (protocol version 2026-07-28). The client learns of them from the listing.
        await _learn_headers(client, name)
        result = await client.session.send_request(request, _CALL_RESULT)
    if not isinstance(result, mcp_types.CallToolResult):
        raise MCPError(mcp_types.INVALID_REQUEST, MORE_INPUT)
    return _plain(result)


async def _learn_headers(client: Client, name: str) -> None:
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        cursor = page.next_cursor
        if cursor is None or any(tool.name == name for tool in page.tools):
            return


async def _in_session(
    server: McpServer, talk: Callable[[Client], Awaitable[T]], seconds: float
) -> T:
    policy = server.policy or installation_policy()
    try:
        url = str(policy.check_url(server.url))  # before anybody reads it in another way
    except UnsafeAddress as unsafe:
        raise SessionFault(unsafe.message, cause=unsafe) from None
    line = Line(policy, server.line)
    task = asyncio.ensure_future(_session(replace(server, url=url), line, talk))
    ends: set[asyncio.Future[Any]] = {task, line.ended}
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    except TimeoutError:
        line.end("timeout")
    finally:
        await _end(task, line)
    if not task.cancelled() and (error := task.exception()) is None:
        return task.result()
    raise _session_fault(line, None if task.cancelled() else error)


async def _end(task: asyncio.Task[Any], line: Line) -> None:
    """Wait until the session is over, and cut the line if that takes too long."""
    if task.done():
        return
    task.cancel()
    # The SDK now says goodbye, without which a server of an older protocol would work on; a server
    # that does not answer must not hold the caller, so the line is cut after a moment.
    try:
        if not line.ended.done():
            await asyncio.wait({task}, timeout=FAREWELL_SECONDS)
    finally:
        line.cut()
        await asyncio.wait({task})


async def _session(server: McpServer, line: Line, talk: Callable[[Client], Awaitable[T]]) -> T:
    limits = server.line.limits
    http = httpx2.AsyncClient(
        transport=line,
        trust_env=False,
        max_redirects=3,
        headers={"User-Agent": "Amber"},
        timeout=httpx2.Timeout(None, connect=limits.connect_seconds),
    )
    streams = streamable_http_client(
        server.url, http_client=http, max_sse_event_size=limits.max_bytes
    )
    is_older = server.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    async with (
        http,
        Client(
            streams,
            mode="legacy" if is_older else "auto",
            client_info=mcp_types.Implementation(name="Amber", version=settings.AMBER_VERSION),
            cache=None,
        ) as client,
    ):
        return await talk(client)


def _session_fault(line: Line, error: BaseException | None) -> SessionFault:
    """Return what ended the line, else what the SDK reports, else what last failed on the wire."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    status = line.status if line.status is not None and line.status >= 300 else None
    fault = partial(SessionFault, status=status, has_called=line.has_called)
    if not line.ended.done():
        if isinstance(error, ValidationError):
            return fault("It does not keep to the protocol.", fields=_fields(error))
        if isinstance(error, MCPError) and error.code != mcp_types.CONNECTION_CLOSED:
            return fault(f"It says: {error.message[:MAX_WORDS_CHARS]}", code=error.code)
        if isinstance(error, RuntimeError) and "protocol version" in str(error):
            return fault("It supports no version of the protocol that Amber knows.")
    if line.fault is None and not isinstance(error, MCPError):
        raise error or AssertionError("a session ends with a result, an error or a fault")
    cause = line.fault or FetchError("unreachable")
    return fault(cause.message, cause=cause)


def _fields(error: ValidationError) -> dict[str, list[str]]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    fields: dict[str, list[str]] = {}
    for each in found[:_MAX_SHOWN_FIELDS]:
        fields.setdefault(_place(each["loc"]), []).append(each["msg"])
    return fields


def _place(steps: tuple[int | str, ...]) -> str:
    """Write a place as `tools[2].inputSchema`; empty steps mean the answer as a whole."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")[:200]


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain
