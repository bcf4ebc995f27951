"""The official client of MCP against a live server, over real HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

T = TypeVar("T")

WAIT_SECONDS = 30


def with_client(
    address: str, key: str, talk: Callable[[Client], Awaitable[T]], *, mode: Any = "auto"
) -> T:
    """Return what `talk` returns; `mode` is "legacy" for the older protocol with a handshake."""

    async def run() -> T:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with (
            asyncio.timeout(WAIT_SECONDS),
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=WAIT_SECONDS) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            return await talk(client)

    return asyncio.run(run())


def call(address: str, key: str, tool: str, *, mode: Any = "auto", **arguments: Any) -> Any:
    """Call a tool and return its result."""
    return with_client(address, key, lambda client: client.call_tool(tool, arguments), mode=mode)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)
