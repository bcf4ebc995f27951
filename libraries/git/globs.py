"""Select paths of a tree by patterns, as people know them from .gitignore.

`*` and `?` stay inside a part of the path, `**` stands for any number of parts. A pattern without a
slash matches a name at any depth (`*.md`, `node_modules`), one with a slash from the top
(`docs/*.md`). A pattern that names a folder matches all in it. Negation (`!`) is not supported.

A part is matched by Python's own `fnmatch`, whose expressions do not backtrack from one `*` into
another, and parts by the set of places in the pattern that a path has reached: no pattern is slow.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final

MAX_WILDCARDS: Final = 20
"""Limit of one pattern: nobody needs more."""

_WILDCARDS: Final = re.compile(r"\*\*/|\*+|\?")

_Pattern = Sequence[str | None]
"""What each part has to be, as `fnmatch` reads it; None stands for any number of parts."""


def selector(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a path (with `/`, from the top) is meant.

    An empty `include` means every path.
    """
    wanted, unwanted = [*map(_split, include)], [*map(_split, exclude)]

    def is_meant(path: str) -> bool:
        parts = path.split("/")
        is_wanted = not wanted or any(_matches(pattern, parts) for pattern in wanted)
        return is_wanted and not any(_matches(pattern, parts) for pattern in unwanted)

    return is_meant


def count_wildcards(pattern: str) -> int:
    return len(_WILDCARDS.findall(pattern))


def _split(pattern: str) -> _Pattern:
    bare = pattern.strip().removeprefix("./").rstrip("/")
    *folders, name = bare.removeprefix("/").replace("[", "[[]").split("/")
    anywhere = [] if "/" in bare else [None]
    return [*anywhere, *(None if part == "**" else part for part in folders), name]


def _matches(pattern: _Pattern, parts: Sequence[str]) -> bool:
    """Return whether the pattern leads to the path, or to a folder above it."""
    reached = [0]
    for part in parts:
        further: list[int] = []
        for place in reached:
            wanted = pattern[place]
            if wanted is None:
                further.append(place)
                reached.append(place + 1)  # it may stand for no part
            elif fnmatchcase(part, wanted):
                further.append(place + 1)
        if len(pattern) in further:
            return True
        reached = list(dict.fromkeys(further))
        if not reached:
            return False
    return False
