"""Tell whether a text is made of words that somebody said.

Pure. Whole words are compared, in scripts without spaces every two neighbouring characters. It says
nothing about meaning: who relies on it decides which words may be added.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"(?P<run>[{_CJK}]+)|[^\W_{_CJK}]+")


def plain(text: str) -> str:
    """Return the text without differences of case and width."""
    return unicodedata.normalize("NFKC", text).casefold()


def unsaid_words(
    text: str,
    said: str,
    *,
    added: frozenset[str] = frozenset(),
    added_run: "re.Pattern[str] | None" = None,
    stem: Callable[[str], str] = str,
) -> list[str]:
    """Return the words of a text that were not said, in order.

    Words count as the same if their stems are, and those `added` count as said. `added_run` matches
    what counts as said in scripts without spaces. Linear in both texts.
    """
    known = parts_of(said, stem=stem)
    missing = []
    for match in _WORD.finditer(plain(text)):
        if match["run"]:
            parts = added_run.split(match["run"]) if added_run else [match["run"]]
            missing += [part for part in parts if part and not _pairs(part) <= known]
        elif match[0] not in added and stem(match[0]) not in known:
            missing.append(match[0])
    return missing


def parts_of(text: str, *, stem: Callable[[str], str] = str) -> set[str]:
    """Return the stems of a text's words, and the pairs of scripts without spaces."""
    parts: set[str] = set()
    for match in _WORD.finditer(plain(text)):
        parts |= _pairs(match[0]) if match["run"] else {stem(match[0])}
    return parts


def _pairs(run: str) -> set[str]:
    """Return every two neighbours, and every character for those who ask for one alone."""
    return {*run, *(run[i : i + 2] for i in range(len(run) - 1))}


def are_worded_in(texts: Sequence[str], sources: Sequence[str]) -> bool:
    """Return whether texts say nothing beyond these sources taken together: no word or number, and
    not more other signs than words.

    An address must stand in a source as it is. Linear in the texts and the sources, but for
    addresses: each is looked for in all of them.
    """
    if not all(any(text in source for source in sources) for text in texts if "://" in text):
        return False
    said = plain("\n".join(text for text in texts if "://" not in text))
    signs = "".join(_WORD.sub("", said).split())
    return len(signs) <= len(_WORD.findall(said)) and not unsaid_words(said, "\n".join(sources))
