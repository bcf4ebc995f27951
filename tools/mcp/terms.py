"""Define what a session with an MCP server is given, and what it returns.

These stand apart from `tools.mcp.session` and `tools.mcp.transport`, so that naming them imports
neither the SDK nor an HTTP client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amber.lib.egress import EgressPolicy, FetchError, UnsafeAddress
from tools.protocol import Exchange


@dataclass(frozen=True, slots=True)
class LineLimits:
    """Limits a whole session, so that it costs a worker less than 50 MB and half a second.

    `max_brackets` counts opening brackets: each can become an object of up to 1,400 bytes, a
    content block. `max_commas` counts commas: each stands for a value of some 40 bytes. `max_lines`
    counts the lines of event streams: for each message, of three lines, the SDK takes 0.1 ms of the
    worker's event loop.
    """

    max_bytes: int = 10_000_000
    max_brackets: int = 30_000
    max_commas: int = 400_000
    max_lines: int = 20_000
    connect_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class LineOptions:
    """The options of a line.

    `credentials` are sent with every request, `call_headers` with a tool's call only.
    """

    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    call_headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    exchanges: list[Exchange] | None = None
    limits: LineLimits = LineLimits()


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server to talk to.

    `protocol_version` is what discovery agreed on, empty if that is to be found out. With `policy`
    None the installation's holds.
    """

    url: str
    line: LineOptions
    protocol_version: str = ""
    policy: EgressPolicy | None = None


@dataclass(frozen=True, slots=True)
class ServerListing:
    """A server's description of itself, with its tools as it wrote them. `is_cut`: it has more."""

    name: str
    instructions: str
    protocol_version: str
    tools: Sequence[Mapping[str, Any]]
    is_cut: bool = False


class SessionFault(Exception):
    """A session failed. `text` is for the tool's owner, `cause` the connection's fault, if any.

    `status` is that of a refusing answer, `code` that of a JSON-RPC error, `fields` what in the
    answer is against the protocol. `has_called`: the tool's call may have reached the server.
    """

    def __init__(
        self,
        text: str,
        *,
        cause: FetchError | UnsafeAddress | None = None,
        status: int | None = None,
        code: int | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
        has_called: bool = False,
    ) -> None:
        self.text = text
        self.cause = cause
        self.status = status
        self.code = code
        self.fields = fields or {}
        self.has_called = has_called
        super().__init__(text)
