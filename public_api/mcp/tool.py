"""Define what a tool of the MCP server is: its description, and how it runs for a caller.

Plain values: the official SDK is known to `public_api.mcp.server` alone.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from accounts.principal import Principal

Json = dict[str, Any]

MAX_TEXT_CHARS: Final = 200
"""Of names of libraries and assistants in the texts that tell of many."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call returned: the text that a model reads, and the same as values."""

    text: str
    values: Json = field(default_factory=dict)


Report = Callable[[str], Awaitable[None]]
"""Tells the client, if it wants to know, in a few words what is being done."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool. `run` raises AmberError, whose message the model may read.

    `returns` is the schema of the answer's values. `reads_only`: a call changes nothing.
    """

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any]
    run: Callable[[Principal, Json, Report], Coroutine[Any, Any, ToolAnswer]] = field(repr=False)
    reads_only: bool = True


def object_of(required: tuple[str, ...] = (), /, **properties: Any) -> Json:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def one_line(text: str) -> str:
    """Return a name for a line of a list: cut, and without breaks."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[: MAX_TEXT_CHARS - 1]}…"
