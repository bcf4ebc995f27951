"""Define what every source of functions does: find out what a service offers, and call it.

Each kind of tool implements `Source` (`tools.discovery.source`, `tools.openapi.source`,
`tools.mcp.source`); `tools.connections.sources` lists them. A source knows no row and no database:
it is given a `Connection` and what discovery last found (`DiscoveryResult.data`, stored in `Tool.data`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from amber.lib.errors import Invalid
from tools.protocol import OfferedTool


class DiscoveryError(Invalid):
    """The service does not describe itself in a way that can be used.

    `fields` says what is wrong where, such as {"functions[2].parameters": ["…"]}; what lies at an
    address the caller may not look at is never in it.
    """

    default_code = "discovery_failed"


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a tool's service and how to speak to it. `options` are the tool's, validated.

    `api_key` is in the clear: never log or store it. `renew` gives a token instead, where there is
    one: not the one that it is told was refused. It raises CredentialError.
    """

    url: str
    api_key: str = field(default="", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    tool_id: UUID | None = None
    name: str = ""
    renew: Callable[[str], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """A service's description of itself; `data` is JSON, of which its functions are made.

    `data["functions"]` is a list of {"name", "description", "parameters", "idempotent",
    "read_only", "requires_approval", "timeout_seconds"}, the last four only where they were given.
    `warnings` are for the person who added the tool: what was left out, renamed or cut, and why.
    """

    name: str
    description: str
    data: Mapping[str, Any]
    warnings: Sequence[str] = ()


class Source(Protocol):
    """One kind of tool."""

    def check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options to store. Raises Invalid with `fields` under "options"."""
        ...

    async def discover(self, connection: Connection) -> DiscoveryResult:
        """Ask the service what it offers. Raises DiscoveryError, UnsafeAddress, FetchError."""
        ...

    def functions(self, connection: Connection, data: Mapping[str, Any]) -> Sequence[OfferedTool]:
        """Return all functions of a tool with this data, in its order. Nothing is sent."""
        ...

    def key_url(self, connection: Connection, data: Mapping[str, Any]) -> str:
        """Return an address of the one origin that the key goes to; empty if not known yet.

        A stored key is never kept for another origin than the one it was given for.
        """
        ...
