"""Read an API's own events as chunks in the form of OpenAI's chat completions.

Pure: no I/O. A dialect says what each event means; the forms of chunks are here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from engine.provider.dialects.placed_blocks import BlockPlaces
from engine.provider.faults import fault

Json = dict[str, Any]


class EventReader(ABC):
    """Reads the events of one answer, or a whole answer of a server that does not stream.

    Events and blocks that are not known are passed over, as the APIs ask their clients to.
    """

    def __init__(self) -> None:
        self._places = BlockPlaces()

    def read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the chunks that the event is, often none. Raises ProviderError."""
        try:
            yield from self._read(event)
        except (KeyError, TypeError, AttributeError):
            raise fault("provider_malformed") from None

    @abstractmethod
    def _read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the event's chunks; what it lacks may raise KeyError, TypeError, AttributeError."""

    def _say(self, text: str) -> Json:
        self._places.count_text(text)
        return chunk({"content": text})

    def _begin_call(self, index: Any, id: str, name: str) -> Json:
        self._places.count_call()
        return call_piece(index, id=id, name=name)

    def _keep(self, block: Json) -> Json:
        """Return a chunk that has the block stored and sent back where it stood."""
        return chunk(self._places.field(block))


def chunk(delta: Json, **of_choice: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, **of_choice}]}


def thought(text: str) -> Json:
    """Return a part of the content that is shown and not kept: blocks keep it."""
    return chunk({"content": [{"type": "thinking", "thinking": text}]})


def call_piece(index: Any, id: str = "", **function: str) -> Json:
    return chunk({"tool_calls": [{"index": index, "id": id, "function": function}]})
