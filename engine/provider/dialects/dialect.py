"""Define what a dialect is: how a request is written in it, and where its answers hold calls.

Pure. Nothing here knows which dialects there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from engine.provider.dialects.event_reader import EventReader
from engine.provider.faults import fault
from engine.provider.model import ModelProfile, ModelRequest
from engine.tools import ToolSpec

_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})


def call_pieces(delta: Mapping[str, Any]) -> Sequence[Any]:
    """Return the pieces of calls in OpenAI's form. A `function_call` is one of `tool_calls`, the
    first: servers send it in any dialect. Raises ProviderError."""
    pieces = delta.get("tool_calls") or []
    if not isinstance(pieces, list):
        raise fault("provider_malformed")
    legacy = delta.get("function_call")
    return [*pieces, {"index": 0, "function": legacy}] if legacy else pieces


def plain_schema(tool: ToolSpec) -> dict[str, Any]:
    """Return the schema of a tool's arguments as an object, without alternatives at its top: APIs
    refuse those, and arguments are held to the whole schema before a tool is called."""
    return {"type": "object"} | {k: v for k, v in tool.parameters.items() if k not in _ALTERNATIVES}


def chat_parameters(
    asked: Mapping[str, Any], request: ModelRequest, profile: ModelProfile
) -> Mapping[str, Any]:
    return asked


def no_headers(api_key: str) -> Mapping[str, str | None]:
    return {}


class TextFilter(Protocol):
    """Holds back what is no text of one reply."""

    def feed(self, text: str, /) -> str:
        """Return what may be shown now."""
        ...

    def end(self, *, called: bool) -> str:
        """Return what was held back and is text after all; `called`: the reply has calls."""
        ...


def no_filter(request: ModelRequest) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Dialect:
    """`request_fields` returns the fields of a request that depend on the dialect, without empty
    ones, and changes no message. `call_pieces` returns the pieces of `tool_calls` that a chunk's
    delta, or a whole message, holds; they are checked where they are joined. `new_filter` makes what
    the text of a reply goes through before it is shown, None for nothing.

    A dialect of an API of its own has an address below the provider's (`path`), `headers` beside or
    instead (None: without) of a bearer's, other names of OpenAI's `parameters`, and makes chunks of
    its events (`new_reader`). `other_names` are words of its refusals, and which of OpenAI's
    parameters each is about."""

    request_fields: Callable[[ModelRequest], Mapping[str, object]]
    call_pieces: Callable[[Mapping[str, Any]], Sequence[Any]] = call_pieces
    allows_parallel_calls: bool = False
    path: str = "/chat/completions"
    headers: Callable[[str], Mapping[str, str | None]] = no_headers
    parameters: Callable[[Mapping[str, Any], ModelRequest, ModelProfile], Mapping[str, Any]] = (
        chat_parameters
    )
    other_names: Mapping[str, str] = field(default_factory=dict)
    new_reader: Callable[[], EventReader] | None = None
    new_filter: Callable[[ModelRequest], TextFilter | None] = no_filter
