"""Hold back text of a reply that turns out to be a call: models that write calls as text.

ChatGLM3 writes one as

    get_weather
     ```python
    tool_call(city='Ulm')
    ```

and its server streams this as content before it sends the call itself. Pure.
"""

import re
from collections.abc import Iterable
from typing import Final

_SPLIT: Final = "<|assistant|>"
"""What ChatGLM3 writes between a text and a call."""

_LINE_END = re.compile(r"\n|(?=<)")
_CODE_MARKS: Final = ("```", "tool_call(")


class HiddenCalls:
    """Passes on the text of one reply as it comes, but for lines that may begin a call.

    A line that is a tool's name is kept until the next one shows whether it is one: a call is then
    kept to the end.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._held = ""
        self._is_call = False
        self._is_at_line = True

    def feed(self, text: str) -> str:
        """Return what may be shown now."""
        self._held += text
        if self._is_call:
            return ""
        shown = self._held
        for start in self._line_starts():
            begins_call = self._judge(self._held[start:])
            if begins_call is not False:
                self._is_call = begins_call is True
                shown = self._held[:start]
                break
        self._held = self._held[len(shown) :]
        if shown:
            self._is_at_line = shown.endswith("\n")
        return shown

    def end(self, *, called: bool) -> str:
        """Return the rest: what looked like a call is text, if none came."""
        rest, self._held = self._held, ""
        return "" if called else rest

    def _line_starts(self) -> list[int]:
        starts = [found.end() for found in _LINE_END.finditer(self._held)]
        return [0, *starts] if self._is_at_line else starts

    def _judge(self, text: str) -> bool | None:
        """Return whether a call begins with this text; None as long as that is open."""
        if _SPLIT.startswith(text):
            return None
        line, is_whole, rest = text.removeprefix(_SPLIT).lstrip().partition("\n")
        word = line.strip()
        if not is_whole:
            return None if any(name.startswith(word) for name in self._names) else False
        if word not in self._names:
            return False
        rest = rest.lstrip(" \t")
        if rest.startswith(_CODE_MARKS):
            return True
        return None if any(mark.startswith(rest) for mark in _CODE_MARKS) else False
