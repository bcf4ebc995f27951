"""Assemble the widget: one file for embedders, of its own part and the modules it shares with the page.

`make widget` writes it; tests/house/test_web_files.py holds it to its parts. A line `/*= shared/name.js */` in
web/widget/amber-widget.js stands for that module, without its imports, exports and types. What only
people who read the source need (layout, comments, long names) is left out: half of what pages fetch.
Nothing is optimized beyond that, so the source must end each statement with a semicolon.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Final

WEB = Path(__file__).resolve().parent.parent
TARGET = WEB.parent / "public_api" / "static" / "amber-widget.js"

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*|/\*.*?\*/)+)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[\w$]+(?:\.\d+)?)
    |(?P<regex>/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)
    |(?P<mark>=>|\+\+|--|\?\?=|\?\.|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_ENDS_A_VALUE: Final = re.compile(r"[\w$)\]}\"'`]$")
"""After one of these a slash divides; elsewhere it begins a regular expression."""


def assemble() -> str:
    source = (WEB / "widget" / "amber-widget.js").read_text()
    whole = re.sub(
        r"^\t/\*= (\S+) \*/\n", lambda found: _inline(WEB / found[1]), source, flags=re.MULTILINE
    )
    head, rest = whole.split("*/\n", 1)  # who made it, and how it is used
    return f"{head}*/\n{_join(_shorten_names(list(_tokens(rest))))}\n"


def _inline(module: Path) -> str:
    code = re.sub(r"^import .*\n\n?", "", module.read_text(), flags=re.MULTILINE)
    code = re.sub(r"/\*\* @type \{.*?\} \*/ ?\(((?:[^()]|\([^()]*\))*)\)", r"\1", code)
    return re.sub(r"^export ", "", code, flags=re.MULTILINE)


def _tokens(code: str) -> Iterator[str]:
    """Yield the tokens without space and comments; a template is cut up into texts and code."""
    place, last, nested = 0, "", []
    while place < len(code):
        if code[place] == "`" or (code[place] == "}" and nested and nested[-1] == 0):
            last = _template_text(code, place)
            nested = nested if code[place] == "`" else nested[:-1]
            nested = [*nested, 0] if last.endswith("${") else nested
            place += len(last)
            yield re.sub(r"\n+", "", last)  # style sheets: no text of people's has lines
            continue
        found = _TOKEN.match(code, place)
        assert found is not None
        kind, token = found.lastgroup, found[0]
        if kind == "regex" and _ENDS_A_VALUE.search(last) and last != "return":
            kind, token = "mark", "/"
        place += len(token)
        if nested and token in "{}":
            nested[-1] += 1 if token == "{" else -1
        if kind != "space":
            last = token
            yield token


def _template_text(code: str, place: int) -> str:
    """Return a template's text from here to its end or its next `${`, both included."""
    found = re.compile(r"[`}](?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)", re.DOTALL).match(code, place)
    assert found is not None
    return found[0]


def _shorten_names(tokens: list[str]) -> list[str]:
    """Give names that are declared here short ones, the most used first.

    A name that is a property's anywhere keeps its own. Strings are never looked into.
    """
    opening = _brackets(tokens)
    closing = {opened: place for place, opened in enumerate(opening)}  # the last inside, so far
    properties, declared = set(), set()
    for place, token in enumerate(tokens[:-1]):
        inside = opening[place]
        if _is_property(tokens, place, tokens[inside]):
            properties.add(token)
        elif _is_declared(tokens, place, inside, closing[inside] + 1):
            declared.add(token)
    declared -= properties
    used = Counter(token for token in tokens if token in declared)
    names = [name for name, _ in used.most_common() if len(name) > 1]
    taken = set(tokens)
    fresh = (name for name in _short_names() if name not in taken)
    renamed = dict(zip(names, fresh, strict=False)) | {"true": "!0", "false": "!1"}
    return [renamed.get(token, token) for token in tokens]


def _is_property(tokens: list[str], place: int, inside: str) -> bool:
    """Whether this may be a property's name: after a dot, before a colon, or alone in braces."""
    before, after = tokens[place - 1], tokens[place + 1]
    is_alone = inside == "{" and before in ("{", ",") and after in (",", "}", "=")
    return before in (".", "?.") or after == ":" or is_alone


def _is_declared(tokens: list[str], place: int, opening: int, closing: int) -> bool:
    """Whether a name is declared here: by a word, or as a parameter."""
    before, after = tokens[place - 1], tokens[place + 1]
    if not re.fullmatch(r"[a-zA-Z]\w*", tokens[place]):
        return False
    if before in ("const", "let", "function") or after == "=>" or tokens[place - 2] == "function":
        return before != "("
    is_first = before in ("(", ",")
    is_of_arrow = tokens[opening] == "(" and tokens[closing + 1] == "=>"
    return is_first and (is_of_arrow or tokens[opening - 2] == "function")


def _brackets(tokens: list[str]) -> list[int]:
    """Return for each token the place of the bracket that it stands in; 0 if in none."""
    around, found = [0], []
    for place, token in enumerate(tokens):
        if token in (")", "]", "}") or (token[0] == "}" and len(token) > 1):
            around.pop()
        found.append(around[-1])
        if token in ("(", "[", "{") or token.endswith("${"):
            around.append(place)
    return found


def _short_names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    yield from letters
    yield from (f"{letter}{number}" for number in count() for letter in letters)


def _join(tokens: list[str]) -> str:
    """Put a space only between what would else be read as one."""
    bare = list(_drop_optional_marks(tokens))
    return "".join(
        token + (" " if _run_together(token, after) else "")
        for token, after in pairwise([*bare, ""])
    )


def _drop_optional_marks(tokens: list[str]) -> Iterator[str]:
    """Write `(one) => …` as `one => …`, and no comma or semicolon in front of a bracket's end."""
    for place, token in enumerate(tokens):
        after = tokens[place + 1 : place + 4]
        is_opening = token == "(" and after[1:] == [")", "=>"] and after[0] != "("
        is_closing = token == ")" and after[:1] == ["=>"]
        is_of_one = is_closing and tokens[place - 2] == "(" != tokens[place - 1]
        is_last = token + "".join(after[:1]) in (",)", ",]", ",}", ";}")
        if not (is_opening or is_of_one or is_last):
            yield token


def _run_together(before: str, after: str) -> bool:
    both = before[-1:] + after[:1]
    return bool(re.fullmatch(r"[\w$]{2}|\+\+|--", both)) and not before.endswith("${")


if __name__ == "__main__":
    TARGET.write_text(assemble())
