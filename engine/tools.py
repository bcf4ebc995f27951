"""Define what a tool is to a turn: a name, a description, a JSON Schema, and something to call.

Where tools come from (built-in functions, HTTP services, MCP) is not known here: see `tools/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypedDict

from engine.messages import Attachment
from engine.tool_calls import ToolCall
from engine.trust import Exposure

MAX_OFFERED_TOOLS = 128
"""OpenAI refuses a request with more (https://platform.openai.com/docs/api-reference/chat)."""


class NamedFunction(TypedDict):
    name: str


class NamedChoice(TypedDict):
    type: Literal["function"]
    function: NamedFunction


ToolChoice = str | NamedChoice
"""OpenAI's `tool_choice`: "none", "auto", "required", or the one function to call."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it. `parameters` is a JSON Schema 2020-12 object schema.

    `name` matches [a-zA-Z0-9_-]{1,64} and is unique among the tools of one request. `strict`: the
    provider is to hold the arguments to the schema; None leaves it to the provider.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file that came with a result. `id` means something to whoever keeps it, nothing here."""

    id: str
    attachment: Attachment


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call as the model reads it, and whether the call succeeded.

    `kept` belongs to the result for people to open: the whole of what was cut, or a document.
    `produced` is shown to the model behind the results, as if somebody had sent it: images.
    `passages` are those of the content that an answer may cite, each with its `number`.
    """

    call_id: str
    ok: bool
    content: str
    kept: ResultFile | None = None
    produced: tuple[ResultFile, ...] = ()
    passages: tuple[dict[str, Any], ...] = ()


class Toolbox(Protocol):
    """The tools one turn may use."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Return at most MAX_OFFERED_TOOLS, in a stable order (prompt caches depend on it)."""
        ...

    def is_safe_to_repeat(self, name: str) -> bool:
        """Return whether calling twice does no harm, so that a crashed call can be repeated."""
        ...

    def asks_first(self, call: ToolCall, exposure: Exposure) -> bool:
        """Return whether a person must approve this call of a turn that has read so much, and there
        is somebody who can."""
        ...

    def is_client_tool(self, name: str) -> bool:
        """Return whether it is the client's function: its calls end the turn, and never run
        here."""
        ...

    async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
        """Run one call and return what the model shall read; never raises for a tool's fault.

        `exposure` is what the turn had read when the model asked for it.

        Its arguments are the raw JSON string of the model. An unknown name, bad JSON, a schema
        violation, a timeout or a failing tool is a result with ok=False and a short text.
        """
        ...
