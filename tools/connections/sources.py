"""Map each kind of tool to its source."""

from collections.abc import Mapping
from typing import Final

from tools.discovery.source import DiscoverySource
from tools.mcp.source import MCPSource
from tools.models import ToolKind
from tools.openapi.source import OpenAPISource
from tools.source import Source

SOURCES: Final[Mapping[str, Source]] = {
    ToolKind.DISCOVERY: DiscoverySource(),
    ToolKind.OPENAPI: OpenAPISource(),
    ToolKind.MCP: MCPSource(),
}


def source_of(kind: str) -> Source:
    return SOURCES[kind]
