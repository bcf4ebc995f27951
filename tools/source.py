"""What every source of functions can do: find out what a service offers, and call it.

One file per kind of tool implements `Source` (`tools.discovery.source`, `tools.openapi.source`, `tools.mcp.source`);
`tools.connections.sources` is the table of them. A source knows no row and no database: it is given a
`Connection` and what discovery found the last time (`Discovered.data`, which becomes `Tool.data`).
"""

from collections.abc import Mapping, Sequence
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
    """Where a tool's service is and how to speak to it. `options` are the tool's, validated.

    `api_key` is in the clear: never log it, never keep it.
    """

    url: str
    api_key: str = field(default="", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    tool_id: UUID | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a service said of itself; `data` is JSON and all that its functions are made of.

    `data["functions"]` is a list of {"name", "description", "parameters", "idempotent",
    "requires_approval", "timeout_seconds"}, the last three only where they were given.
    `warnings` are for the person who added the tool: what was left out, renamed or cut, and why.
    """

    name: str
    description: str
    data: Mapping[str, Any]
    warnings: Sequence[str] = ()


class Source(Protocol):
    """One kind of tool."""

    def check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options as they are to be stored. Raises Invalid with `fields` under "options"."""
        ...

    async def discover(self, connection: Connection) -> Discovered:
        """Ask the service. Raises DiscoveryError, UnsafeAddress, FetchError."""
        ...

    def functions(self, connection: Connection, data: Mapping[str, Any]) -> Sequence[OfferedTool]:
        """All functions of a tool with this data, in the order of `data`. Nothing is sent."""
        ...

    def key_url(self, connection: Connection, data: Mapping[str, Any]) -> str:
        """An address of the one origin that the key goes to; empty if that is not known yet.

        A stored key is not kept for another one than it was given for.
        """
        ...
