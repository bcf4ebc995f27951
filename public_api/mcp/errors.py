"""Tell errors at the MCP server's address as JSON-RPC does.

    {"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message", "data": {"code"}}}

Errors of tools are results instead (`public_api.mcp.server`).
"""

from typing import Final

from amber.lib.errors import AmberError
from amber.lib.rest.api import Refusal, error_body, error_headers

PREFIX: Final = "/mcp"

PARSE_ERROR: Final = -32700
REFUSED: Final = -32000
"""Of JSON-RPC's numbers those that a server may use as it likes."""


def mcp_form(error: AmberError) -> Refusal:
    """Return the whole answer to an error."""
    told = error_body(error)["error"]
    message = told.pop("message")
    number = PARSE_ERROR if error.code == "malformed_json" else REFUSED
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": number, "message": message, "data": told},
    }
    return Refusal(error.status, body, error_headers(error))
