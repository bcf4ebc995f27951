"""Select paths of a tree by patterns, as people know them from .gitignore.

`*` and `?` stay inside a part of the path, `**` crosses parts. A pattern without a slash matches a
name at any depth (`*.md`, `node_modules`), one with a slash from the top (`docs/*.md`). A pattern
that names a folder matches all in it. Negation (`!`) is not supported.

All patterns of a list are one nondeterministic automaton, whose states are the bits of one number:
a path costs one step a character, whatever the patterns are. (Regular expressions backtrack:
`*a*a*a*a*a*b` took seconds for one path.)
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

MAX_WILDCARDS: Final = 20
"""Limit of one pattern. Nobody needs more, and each is another step for a path."""

_TOKENS: Final = re.compile(r"\*\*/|\*+|[^*]")


def selector(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a path (with `/`, from the top) is meant.

    An empty `include` means every path.
    """
    wanted, unwanted = _Automaton(include), _Automaton(exclude)

    def is_meant(path: str) -> bool:
        return (not include or wanted.matches(path)) and not unwanted.matches(path)

    return is_meant


def count_wildcards(pattern: str) -> int:
    return sum(token[0] in "*?" for token in _TOKENS.findall(pattern))


class _Automaton:
    """Bit n of a number stands for state n: how far a path has brought a pattern."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._states = 0
        self._first = 0
        self._last = 0
        self._literal: dict[str, int] = {}  # character -> states that it takes one further
        self._one = 0  # states that any character but a slash takes one further: `?`
        self._part = 0  # states that stay for any character but a slash: `*`
        self._any = 0  # states that stay for any character: `**`
        self._skip_one = 0  # states that are the next one, too
        self._skip_two = 0  # states that are the one after the next, too
        for pattern in patterns:
            self._add(pattern)
        self._first = self._close_over(self._first)

    def _add(self, pattern: str) -> None:
        bare = pattern.strip().removeprefix("./").rstrip("/")
        self._first |= 1 << self._states
        for token in [] if "/" in bare else ["**/"]:
            self._take(token)
        for token in _TOKENS.findall(bare.removeprefix("/")):
            self._take(token)
        self._last |= 1 << self._states
        self._states += 1

    def _take(self, token: str) -> None:
        state = 1 << self._states
        self._states += 1
        if token == "**/":
            # Nothing at all, or anything up to a slash: a second state waits for that.
            waiting = state << 1
            self._states += 1
            self._skip_one |= state
            self._skip_two |= state
            self._any |= waiting
            self._literal["/"] = self._literal.get("/", 0) | waiting
        elif token.startswith("*"):
            self._skip_one |= state
            if token == "*":
                self._part |= state
            else:
                self._any |= state
        elif token == "?":
            self._one |= state
        else:
            self._literal[token] = self._literal.get(token, 0) | state

    def _close_over(self, states: int) -> int:
        """Return these states, and all that are reached from them without a character."""
        while True:
            more = states | (states & self._skip_one) << 1 | (states & self._skip_two) << 2
            if more == states:
                return states
            states = more

    def matches(self, path: str) -> bool:
        states = self._first
        for character in path:
            if character == "/":
                if states & self._last:  # a folder's pattern matches what is in it, too
                    return True
                further, staying = self._literal.get("/", 0), self._any
            else:
                further = self._literal.get(character, 0) | self._one
                staying = self._any | self._part
            states = self._close_over((states & further) << 1 | states & staying)
            if not states:
                return False
        return bool(states & self._last)
