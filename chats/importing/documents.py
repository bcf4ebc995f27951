"""Read the conversations of a JSON text one at a time, so that memory holds one of them.

A text holds a conversation, a list of them, an object with such a list (`chats`, `conversations`),
or one of these on each line. Nothing is recognised here beyond that. Depth costs no more than a
refusal: parsing stops where Python's own recursion would.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from amber.lib.errors import Invalid

MAX_BRACKETS: Final = 1_500_000
"""Objects and lists of one text. An export of 20 MB has some 400,000; each takes up to 200 bytes."""

_LISTS: Final = ("chats", "conversations")
_SPACE: Final = re.compile(r"[ \t\n\r]*+")


def read_conversations(content: bytes) -> Iterator[Any]:
    """Yield the conversations as they are parsed. Raises Invalid: `malformed_json`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        _refuse("it is not UTF-8")
    if text.count("{") + text.count("[") > MAX_BRACKETS:
        _refuse(f"it has more than {MAX_BRACKETS:,} objects and lists")
    reader = _Reader(text)
    if reader.is_at_end:
        _refuse("it is empty")
    while not reader.is_at_end:
        yield from _conversations_in(reader)


def _conversations_in(reader: "_Reader") -> Iterator[Any]:
    if reader.char == "[":
        yield from _of_list(reader.items())
        return
    value = reader.value()
    if not isinstance(value, dict):
        _refuse("it must be an object or a list")
    for name in _LISTS:
        if isinstance(value.get(name), list) and "messages" not in value:
            yield from _of_list(iter(value[name]))
            return
    yield value


def _of_list(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items; a list of messages is one conversation."""
    for item in items:
        if isinstance(item, dict) and "role" in item and "mapping" not in item:
            yield [item, *items]
            return
        yield item


class _Reader:
    """A place in a JSON text, always in front of a value or at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self._place = 0
        self._skip_space()

    @property
    def char(self) -> str:
        return self._text[self._place : self._place + 1]

    @property
    def is_at_end(self) -> bool:
        return self._place >= len(self._text)

    def value(self) -> Any:
        """Parse the value here. Raises Invalid."""
        try:
            found, self._place = self._decoder.raw_decode(self._text, self._place)
        except json.JSONDecodeError as error:
            _refuse(f"{error.msg}, at character {error.pos + 1:,}")
        except RecursionError:
            _refuse("it is nested too deeply; export the chat without nesting its messages")
        except ValueError:
            _refuse("it has a number of too many digits")
        self._skip_space()
        return found

    def items(self) -> Iterator[Any]:
        """Yield the items of the list that begins here. Raises Invalid."""
        self._step()
        if self.char == "]":
            self._step()
            return
        while True:
            yield self.value()
            separator = self.char
            if separator not in (",", "]"):
                _refuse(f"a list is broken off at character {self._place + 1:,}")
            self._step()
            if separator == "]":
                return

    def _step(self) -> None:
        self._place += 1
        self._skip_space()

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._place)
        self._place = space.end() if space else self._place


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"{name} is no number of JSON")


def _refuse(why: str) -> NoReturn:
    raise Invalid(f"The text is not JSON that can be read: {why}.", code="malformed_json")
