"""Which paths of a tree are meant: patterns as people know them from .gitignore.

`*` and `?` stay inside a part of the path, `**` crosses parts. A pattern without a slash counts for
a name at any depth (`*.md`, `node_modules`), one with a slash from the top (`docs/*.md`). What names
a folder means all in it. Refuses negation (`!`).
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

_TOKENS: Final = re.compile(r"\*\*/|\*+|\?|[^*?]+")


def selector(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path (with `/`, from the top) is meant. An empty `include` means every path."""
    wanted = [_compiled(pattern) for pattern in include]
    unwanted = [_compiled(pattern) for pattern in exclude]

    def is_meant(path: str) -> bool:
        if wanted and not any(pattern.match(path) for pattern in wanted):
            return False
        return not any(pattern.match(path) for pattern in unwanted)

    return is_meant


def _compiled(pattern: str) -> re.Pattern[str]:
    bare = pattern.strip().removeprefix("./").rstrip("/")
    is_from_top = "/" in bare
    body = "".join(_translated(token) for token in _TOKENS.findall(bare.removeprefix("/")))
    # A folder's pattern matches what is in it, too.
    return re.compile(rf"{'' if is_from_top else '(?:.*/)?'}{body}(?:/.*)?\Z", re.DOTALL)


def _translated(token: str) -> str:
    if token == "**/":
        return "(?:.*/)?"
    if token.startswith("**"):
        return ".*"
    return {"*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)
