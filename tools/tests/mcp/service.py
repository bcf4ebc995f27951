"""Run an MCP server, written with the official SDK, on 127.0.0.1; tests can restart it."""

import asyncio
import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import Field

from tests.fixtures.ports import free_port

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


EVERYTHING = CallToolResult(
    content=[
        TextContent(type="text", text="First."),
        AudioContent(type="audio", data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri="note://one", text="A note."),
        ),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(
                uri="file:///srv/../report.pdf",
                mime_type="application/pdf",
                blob=base64.b64encode(b"%PDF").decode(),
            ),
        ),
        ResourceLink(type="resource_link", name="more", uri="https://example.com/more"),
    ],
    structured_content={"pages": 2},
)


@dataclass
class Seen:
    """Records what the server's tools noticed."""

    headers: list[dict[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    slow_has_begun: threading.Event = field(default_factory=threading.Event)
    slow_was_cancelled: threading.Event = field(default_factory=threading.Event)


def make_server(seen: Seen) -> MCPServer:
    server = MCPServer("Test service", instructions="Adds numbers, and more.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def add(a: float, b: float, context: Context) -> float:
        """Adds two numbers."""
        seen.calls.append("add")
        seen.headers.append({k.lower(): v for k, v in (context.headers or {}).items()})
        return a + b

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def forget(what: str) -> str:
        seen.calls.append("forget")
        return f"{what} is forgotten."

    @server.tool()
    def weather(city: str) -> dict[str, Any]:
        """Says how the weather is."""
        return {"city": city, "celsius": 21.5}

    @server.tool()
    def locate(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        """Wants its argument in a header, too, for proxies to see."""
        return f"It is in {region}."

    @server.tool()
    def draw():
        """Draws a pixel."""
        return ["Here it is.", Image(data=PIXEL, format="png")]

    @server.tool()
    def everything() -> CallToolResult:
        """Every kind of content."""
        return EVERYTHING

    @server.tool()
    def fail() -> str:
        """Fails."""
        raise ToolError("The moon is in the wrong phase.")

    @server.tool()
    async def wait() -> str:
        """Takes for ever."""
        seen.slow_has_begun.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            seen.slow_was_cancelled.set()
            raise
        return "never"

    @server.tool()
    def much(megabytes: int) -> str:
        """Returns a long text."""
        return "x" * (megabytes * 1_000_000)

    return server


class Running:
    """`stop` breaks every connection; `start` begins anew on the same port, with no memory."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        config = uvicorn.Config(
            self._make(),
            port=self.port,
            log_config=None,
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            self._thread.join(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
