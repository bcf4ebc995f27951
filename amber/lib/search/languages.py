"""Tell the language of a text by its commonest words, and which words those are.

A language counts by how many of the text's words are among its common ones; a word that several
languages share counts less for each. Scripts of one main language need no words. There is no model:
a library's chunks and questions want to know a dozen languages, within microseconds.
docs/retrieval.md has how often this is right.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

UNTOLD: Final = ""
"""The language of a text that holds too little, or is of one that is not known here."""

SPACELESS: Final = "spaceless"
"""Chinese, Japanese and other scripts without spaces between words: nothing is stemmed."""

LEAST_SHARE: Final = 0.08
"""Of running text a third are common words, of a list of names or of another language few."""

SURE: Final = 1.2
"""The first language has so many times what the second has, or none is told."""

_SOURCE: Final = Path(__file__).with_name("common_words.txt")

_BLOCKS: Final = (
    (0x0250, "latin"),
    (0x0370, UNTOLD),
    (0x0400, "el"),
    (0x0530, "ru"),
    (0x0600, UNTOLD),
    (0x0700, "ar"),
    (0x0750, UNTOLD),
    (0x0780, "ar"),
    (0x0900, UNTOLD),
    (0x0980, "hi"),
    (0x0E00, UNTOLD),
    (0x0F00, SPACELESS),
    (0x1000, UNTOLD),
    (0x10A0, SPACELESS),
    (0x1100, UNTOLD),
    (0x1200, SPACELESS),
    (0x1780, UNTOLD),
    (0x1800, SPACELESS),
    (0x1E00, UNTOLD),
    (0x1F00, "latin"),
    (0x2000, "el"),
    (0x2E80, UNTOLD),
    (0xD800, SPACELESS),
    (0xF900, UNTOLD),
    (0xFB00, SPACELESS),
    (0x20000, UNTOLD),
    (0x40000, SPACELESS),
)
"""Unicode's blocks, each up to a first character that is not in it, with the language that is
written in them, or what there are several of. https://www.unicode.org/Public/UNIDATA/Blocks.txt"""

_ENDS: Final = [end for end, _ in _BLOCKS]

LATIN: Final = "latin"

_FOREIGN: Final = {"ru": frozenset("іїєґђјљњћџўқғҳә"), "ar": frozenset("پچژگیکٹڈے")}
"""Letters that the main language of a script does not have: Ukrainian, Serbian; Persian, Urdu."""


@cache
def common_words(language: str) -> frozenset[str]:
    """Return the words that nearly every text of the language has; none for one not known."""
    return _all_common().get(language, frozenset())


@cache
def _all_common() -> Mapping[str, frozenset[str]]:
    """Read the words of all languages, as they are stored: in lower case."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in _SOURCE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            language, *words = line.split()
            found[language].update(words)
    return {language: frozenset(words) for language, words in found.items()}


@cache
def _languages_by_word() -> Mapping[str, tuple[str, ...]]:
    by_word: dict[str, list[str]] = defaultdict(list)
    for language, words in _all_common().items():
        for word in words:
            by_word[word].append(language)
    return {word: tuple(languages) for word, languages in by_word.items()}


def script_language(word: str) -> str:
    """Return the language of a word's script: `LATIN` and `SPACELESS` are of several."""
    if word.isascii():
        return LATIN if word[0].isalpha() else UNTOLD
    at = bisect_right(_ENDS, ord(word[0]))
    return _BLOCKS[at][1] if at < len(_BLOCKS) else UNTOLD


def language_of(words: Mapping[str, int] | Iterable[str]) -> str:
    """Return the language of a text from its words in lower case: of most, if it is told.

    An ISO 639-1 code, SPACELESS or UNTOLD. Linear in the number of words.
    """
    counts: Mapping[str, int] = words if isinstance(words, Mapping) else Counter(words)
    by_script: dict[str, int] = defaultdict(int)
    for word, count in counts.items():
        by_script[script_language(word)] += count
    by_script.pop(UNTOLD, None)
    if not by_script:
        return UNTOLD
    script = max(by_script, key=lambda each: by_script[each])
    if script == LATIN:
        return _latin_language(counts, by_script[LATIN])
    foreign = _FOREIGN.get(script)
    if foreign and _has_many(foreign, counts):
        return UNTOLD
    return script


def _latin_language(counts: Mapping[str, int], total: int) -> str:
    by_language: dict[str, float] = defaultdict(float)
    known = _languages_by_word()
    for word, count in counts.items():
        languages = known.get(word)
        if languages:
            share = count / len(languages)
            for language in languages:
                by_language[language] += share
    best = sorted(by_language, key=lambda each: -by_language[each])[:2]
    if not best or by_language[best[0]] < LEAST_SHARE * total:
        return UNTOLD
    if len(best) > 1 and by_language[best[0]] < SURE * by_language[best[1]]:
        return UNTOLD
    return best[0]


def _has_many(letters: frozenset[str], counts: Mapping[str, int]) -> bool:
    """Return whether a tenth of the words have such letters: names of other languages are fewer."""
    total = sum(counts.values())
    having = sum(count for word, count in counts.items() if not letters.isdisjoint(word))
    return having * 10 >= total


def most_common(languages: Mapping[str, int], limit: int) -> list[str]:
    """Return the languages with the most texts, at most `limit` of them."""
    return [each for each, _ in Counter(languages).most_common(limit)]


def add_up(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return how many texts each language has in all parts together."""
    added: Counter[str] = Counter()
    for language, count in chain.from_iterable(part.items() for part in parts):
        added[language] += count
    return dict(added)
