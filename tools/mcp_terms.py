"""What a session with an MCP server is told, and what it comes back with.

Apart from `tools.mcp_session`, so that naming these does not import the SDK.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amber.lib.egress import EgressPolicy, FetchError, UnsafeAddress
from tools.mcp_line import LineOptions


@dataclass(frozen=True, slots=True)
class Server:
    """`protocol_version` is what discovery agreed on; empty: find out.

    `policy` None is the installation's.
    """

    url: str
    line: LineOptions
    protocol_version: str = ""
    policy: EgressPolicy | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server says of itself. `tools` are as the server wrote them; `is_cut`: there are more."""

    name: str
    instructions: str
    protocol_version: str
    tools: Sequence[Mapping[str, Any]]
    is_cut: bool = False


class SessionFault(Exception):
    """`text` is for the tool's owner. `cause` is the connection's fault, if it was one.

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
