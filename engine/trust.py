"""Tell what a turn has read that neither its user nor its assistant's owner wrote.

Such text is untrusted content: passages, results of tools, web pages, files, images. A turn that
has read any is untrusted, and what its model then asks for may be a stranger's wish. It follows
from the messages alone, so every worker, attempt and step comes to the same answer; nothing is
remembered beside them. What is done about it is decided in `tools`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engine.messages import ASKING_ROLES, MessageRole, facts_of
from engine.tool_calls import ToolCall

TOOL_RESULTS: Final = "tool results"
FILES: Final = "files"
PASSAGES: Final = "passages"
MEMORIES: Final = "memories"
EARLIER_TALK: Final = "earlier talk"

_KINDS: Final = {
    MessageRole.TOOL: TOOL_RESULTS,
    MessageRole.FILE: FILES,
    MessageRole.KNOWLEDGE: PASSAGES,
}


class ReadMessage(Protocol):
    """What counts of a message that was read."""

    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def tool_call(self) -> ToolCall | None: ...


@dataclass(frozen=True, slots=True)
class ToolReading:
    """What a tool answered, as the model reads it; `in_turn`: in the turn that is being run."""

    name: str
    content: str
    in_turn: bool


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a turn has read: the kinds of `untrusted` content, and the words it may rely on.

    `typed` is what the user typed, oldest first, and `prompts` what the assistant's owner wrote.
    Results of `own_tools` hold nothing but Amber's own words.
    """

    untrusted: frozenset[str] = frozenset()
    typed: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    readings: tuple[ToolReading, ...] = ()
    own_tools: frozenset[str] = frozenset()

    @property
    def is_untrusted(self) -> bool:
        return bool(self.untrusted)

    def after(self, name: str, content: str, *, has_files: bool = False) -> "Exposure":
        """Return what the turn has read once this tool has answered."""
        reading = ToolReading(name, content, in_turn=True)
        foreign = {TOOL_RESULTS, *({FILES} if has_files else ())}
        return replace(
            self,
            untrusted=self.untrusted if name in self.own_tools else self.untrusted | foreign,
            readings=(*self.readings, reading),
        )


NOTHING_READ: Final = Exposure()


def exposure_of(
    messages: Sequence[ReadMessage],
    *,
    prompts: Iterable[str] = (),
    more: Iterable[str] = (),
    own_tools: frozenset[str] = frozenset(),
) -> Exposure:
    """Return what a turn has read that is shown `messages`, oldest first, and content of `more` kinds.

    Messages that are no longer rendered (passages of an earlier question) count, too: the answers
    that were made of them are still shown.
    """
    last = max((n for n, m in enumerate(messages) if m.role in ASKING_ROLES), default=-1)
    return Exposure(
        untrusted=frozenset(more) | frozenset(_kinds_in(messages, own_tools)),
        typed=tuple(m.content for m in messages if facts_of(m.role).is_typed),
        prompts=tuple(prompts),
        readings=tuple(
            ToolReading(m.tool_call.name, m.content, in_turn=position > last)
            for position, m in enumerate(messages)
            if m.role == MessageRole.TOOL and m.tool_call is not None
        ),
        own_tools=own_tools,
    )


def _kinds_in(messages: Iterable[ReadMessage], own_tools: frozenset[str]) -> Iterable[str]:
    for message in messages:
        if not facts_of(message.role).is_untrusted or _is_empty_search(message):
            continue
        made_by = message.tool_call.name if message.tool_call else ""
        if made_by not in own_tools:
            yield _KINDS[MessageRole(message.role)]


def _is_empty_search(message: ReadMessage) -> bool:
    return message.role == MessageRole.KNOWLEDGE and not message.content.strip()
