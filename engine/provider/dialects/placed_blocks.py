"""Remember where a provider's own blocks stood in a reply, and put them back there.

Thinking blocks of Anthropic and reasoning items of OpenAI's Responses API stand between texts and
calls, are signed or encrypted, and are wanted back in their order. The neutral form keeps them
beside the message (`engine.provider_fields`), each with its place. Pure; looks into no block.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast

from engine.messages import AssistantMessage, calls_in

_FIELD: Final = "thinking_blocks"


class PlacedBlock(TypedDict):
    """A block, and how many characters of text and how many calls came before it."""

    text_chars: int
    calls: int
    block: Mapping[str, Any]


class BlockPlaces:
    """Counts what a reply has said and called so far."""

    def __init__(self) -> None:
        self._text_chars = 0
        self._calls = 0

    def count_text(self, text: str) -> None:
        self._text_chars += len(text)

    def count_call(self) -> None:
        self._calls += 1

    def field(self, block: Mapping[str, Any]) -> dict[str, list[PlacedBlock]]:
        """Return a delta that adds this block, which stands here."""
        placed: PlacedBlock = {"text_chars": self._text_chars, "calls": self._calls, "block": block}
        return {_FIELD: [placed]}


def in_order(message: AssistantMessage) -> Iterator[tuple[Literal["text", "call", "block"], Any]]:
    """Yield the texts, calls and blocks of a reply as they came.

    A text that got longer or shorter since is cut elsewhere; the blocks keep their order.
    """
    text, said = message["content"] or "", 0
    blocks = list(blocks_of(message))
    for placed in blocks:
        if not placed["calls"]:
            end = max(said, placed["text_chars"])
            yield "text", text[said:end]
            yield "block", placed["block"]
            said = end
    yield "text", text[said:]
    for number, call in enumerate(calls_in(message)):
        yield from (("block", each["block"]) for each in blocks if 0 < each["calls"] == number)
        yield "call", call


def blocks_of(message: AssistantMessage) -> Iterator[PlacedBlock]:
    """Yield those that are in form: a client of `/v1` may have brought anything."""
    given = message.get(_FIELD)
    for placed in given if isinstance(given, Sequence) else ():
        match placed:
            case {"text_chars": int(), "calls": int(), "block": {**block}} if block:
                yield cast(PlacedBlock, placed)
