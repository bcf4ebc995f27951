"""Tell what a model thinks from what it says, where its server puts both into the content.

    <think>…</think> at the start of the text   servers without a parser of their own; Gemini writes <thought>
    parts of type `thinking` in a list          Mistral

Pure. Reasoning in fields of its own is found where the fields are (`engine.provider.chunks`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.provider.faults import fault

_TAGS: Final = {"<think>": "</think>", "<thought>": "</thought>"}
_MAX_HELD_CHARS: Final = 200
"""White space that is held back: all of it is looked at again with each piece."""


class ThinkTags:
    """Takes reasoning in tags off the start of a text that comes in pieces.

    Text is held back only while it could still become a tag. White space around the reasoning goes
    with the tags, and stays where there are none, or where there is much of it.
    """

    def __init__(self) -> None:
        self.is_done = False
        """Whether the rest of the text is all said, none of it thought."""
        self._held = ""
        self._end = ""
        self._has_begun = False
        self._has_ended = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return what is thought, and what is said, of the text so far."""
        self._held += text
        if not self._end and (said := self._open()):
            return "", said
        if self._has_ended:
            return "", self._say()
        return self._think() if self._end else ("", "")

    def flush(self) -> tuple[str, str]:
        """Return what was held back when the text ended."""
        held, self._held, self.is_done = self._held, "", True
        if self._has_ended:
            return "", ""
        return (held, "") if self._end else ("", held)

    def _open(self) -> str:
        begun = self._held.lstrip()
        for tag, end in _TAGS.items():
            if begun.startswith(tag):
                self._held, self._end = begun[len(tag) :], end
                return ""
            if tag.startswith(begun) and len(self._held) <= _MAX_HELD_CHARS:
                return ""
        said, self._held, self.is_done = self._held, "", True
        return said

    def _think(self) -> tuple[str, str]:
        if not self._has_begun:
            self._held = self._held.lstrip()
            self._has_begun = bool(self._held)
        thought, tag, rest = self._held.partition(self._end)
        if tag:
            self._held, self._has_ended = rest, True
            return thought.rstrip(), self._say()
        whole = thought[: len(thought) - _overlap(thought, self._end)]
        shown = whole.rstrip()
        if len(whole) - len(shown) > _MAX_HELD_CHARS:
            shown = whole
        self._held = thought[len(shown) :]
        return shown, ""

    def _say(self) -> str:
        said, self._held = self._held.lstrip(), ""
        self.is_done = bool(said)
        return said


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next(n for n in range(min(len(tag) - 1, len(text)), -1, -1) if text.endswith(tag[:n]))


def split_parts(parts: Sequence[Any]) -> tuple[str, str]:
    """Return what is thought, and what is said, in a content of parts.

    Parts that hold neither (references, images) are passed over. Raises ProviderError.
    """
    thought: list[str] = []
    said: list[str] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise fault("provider_malformed")
        if part.get("type") == "thinking":
            thought.append(_thought_in(part.get("thinking")))
        elif isinstance(text := part.get("text"), str):
            said.append(text)
    return "".join(thought), "".join(said)


def _thought_in(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = (part.get("text") for part in value or () if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))
