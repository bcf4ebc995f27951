"""Cut words to their stems, by the language of the text they stand in: Snowball's stemmers.

    stem("häuser", "de") == stem("haus", "de") == "haus"

What a question asks for is every form that a text may hold the word in (`forms_asked`): its stem in
each language that the texts are in, and the form of texts that were stored before there were
stemmers of languages (`rough_stem`), as long as there are any.

A word of another script than the text's keeps to its own: in a German text English names are cut as
German words, Russian ones as Russian. Words with digits or signs stay whole.
https://snowballstem.org/algorithms/
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import regex  # type: ignore[import-untyped]
import Stemmer

from amber.lib.search.irregular_forms import irregular_forms
from amber.lib.search.languages import LATIN, UNTOLD, script_language

WORDS_FORM: Final = 1
"""The number of this form of stored words. Rows of an older one are rewritten in the background."""

MAX_LANGUAGES: Final = 6
"""Languages of the texts that a question is asked in; each may be one more look into the index."""

_DEFAULT: Final = "en"
"""How Latin words are cut where no language was told, or that of the text has another script."""

_ALGORITHMS: Final = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
_SCRIPTS: Final = {"ar", "el", "hi", "ru"}
"""Languages that stand for their script."""

_PREFIXED: Final = {"nl"}
"""Languages of Latin letters whose stems may lose a prefix (ge-)."""

_FIRST_SPACELESS: Final = "\u2e80"
"""From here on words are of scripts without spaces, which are not stemmed."""

_LETTERS: Final = regex.compile(r"[\p{L}\p{M}]++")
_stemmers: Final = threading.local()
"""Stemmers are not to be shared by threads."""


MIN_STEMMED_CHARS: Final = 4
MIN_STEM_CHARS: Final = 3
_ENDINGS: Final = (
    "ingly",
    "ings",
    "edly",
    "ing",
    "ies",
    "ied",
    "ily",
    "ed",
    "es",
    "ly",
    "s",
    "e",
    "y",
)


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """Return the stem of a word (in lower case) of a text in this language, or the word itself."""
    script = script_language(word)
    if script == LATIN:
        own = language if language in _ALGORITHMS and language not in _SCRIPTS else _DEFAULT
    elif script in _SCRIPTS and language != UNTOLD:
        own = script
    else:
        return word
    if not (word.isalpha() or _LETTERS.fullmatch(word)):
        return word
    cut: str = _stemmer(own).stemWord(word)
    return cut or word


def _stemmer(language: str) -> Stemmer.Stemmer:
    known: dict[str, Stemmer.Stemmer] = _stemmers.__dict__
    if language not in known:
        known[language] = Stemmer.Stemmer(_ALGORITHMS[language], 0)
    return known[language]


def count_stems(words: Mapping[str, int], language: str) -> Counter[str]:
    """Count each stem of a text, from how often it has each word."""
    counted: Counter[str] = Counter()
    for word, count in words.items():
        counted[stem(word, language)] += count
    return counted


def stems_among(wanted: Collection[str], words: Iterable[str], language: str) -> dict[str, str]:
    """Return those words of a text in this language whose stems are wanted, each with its stem.

    Stemming keeps an unaccented Latin letter at the beginning, except for prefixes of some languages. So words
    that begin otherwise than all wanted ones, as most do, are not stemmed.
    """
    firsts = {form[0] for form in wanted}
    return {
        word: cut
        for word in words
        if (word[0] in firsts or "z" < word[0] < _FIRST_SPACELESS or language in _PREFIXED)
        and (cut := stem(word, language)) in wanted
    }


def forms_asked(word: str, languages: Iterable[str], *, is_early: bool) -> tuple[str, ...]:
    """Return each form that texts in these languages hold the word in; the first is the likeliest.

    `is_early` says that there are texts of the form before this one.
    """
    forms = dict.fromkeys(stem(word, language) for language in languages or (UNTOLD,))
    if is_early:
        forms[rough_stem(word)] = None
    return tuple(forms)


def with_irregular(forms: Sequence[str], word: str, language: str) -> tuple[str, ...]:
    """Add the stems of a word's irregular forms, if the question is English, or too short to tell."""
    if language not in (_DEFAULT, UNTOLD):
        return tuple(forms)
    others = (stem(form, _DEFAULT) for form in irregular_forms(word))
    return tuple(dict.fromkeys((*forms, *others)))


@lru_cache(maxsize=10_000)
def rough_stem(word: str) -> str:
    """Return an English word without its ending (live, lives, lived, living: liv); others
    unchanged.

    Coarser than Snowball's, and the only form of words that was stored before it.
    """
    if len(word) < MIN_STEMMED_CHARS or not (word.isascii() and word.isalpha()):
        return word
    cut = next((word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)), word)
    cut = cut if len(cut) >= MIN_STEM_CHARS else word
    return cut[:-1] if len(cut) > MIN_STEM_CHARS and cut[-1] == cut[-2] else cut
