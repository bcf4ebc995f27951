"""Define what a dialect is: how a request is written in it, and where its answers hold calls.

Pure. Nothing here knows which dialects there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.provider.faults import fault
from engine.provider.model import ModelRequest


def call_pieces(delta: Mapping[str, Any]) -> Sequence[Any]:
    """Return the pieces of calls in OpenAI's form. A `function_call` is one of `tool_calls`, the
    first: servers send it in any dialect. Raises ProviderError."""
    pieces = delta.get("tool_calls") or []
    if not isinstance(pieces, list):
        raise fault("provider_malformed")
    legacy = delta.get("function_call")
    return [*pieces, {"index": 0, "function": legacy}] if legacy else pieces


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
    the text of a reply goes through before it is shown, None for nothing."""

    request_fields: Callable[[ModelRequest], Mapping[str, object]]
    call_pieces: Callable[[Mapping[str, Any]], Sequence[Any]] = call_pieces
    allows_parallel_calls: bool = False
    new_filter: Callable[[ModelRequest], TextFilter | None] = no_filter
