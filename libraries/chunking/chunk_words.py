"""Count the words of chunks for full-text search, and pick those of a question.

Words are those of `amber.lib.search.words`, as stems of the chunk's language; a chunk is also found by its
document's name and its headings. Only how often a word occurs is kept, not where: a lexeme that occurs
three times has the positions 1, 2 and 3, and `occurrences_of` reads the number from the `ts_rank` of the word
alone. One more lexeme names the library, so that the table's one GIN index serves each library as if it had
an index of its own, however much others hold.
"""

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from uuid import UUID

from amber.lib.search.languages import UNTOLD, common_words, language_of, most_common
from amber.lib.search.stems import MAX_LANGUAGES, count_stems, forms_asked
from amber.lib.search.words import asked_words, stored_words, tsquery_literal, word_literal
from engine.text.lexical import COMMON_WORDS, is_spaceless

MAX_COUNTED: Final = 32
"""BM25 gains under 1% from the 33rd occurrence."""

MAX_ASKED: Final = 48
"""A long question has two dozen words; each is one look into the index."""

_POSITIONS: Final = [
    struct.pack(f">H{count}H", count, *range(1, count + 1)) for count in range(MAX_COUNTED + 1)
]


def library_word(library_id: UUID) -> str:
    """Return the lexeme that stands for the library. No text has it: `=` is in no word."""
    return f"={library_id.hex}"


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """How often a chunk has each word, and the language it is in."""

    counted: Counter[str]
    language: str


def chunk_words(library_id: UUID, *texts: str) -> ChunkWords:
    """Count each word in the texts together; the library's own word counts once."""
    words = Counter(word for text in texts for word in stored_words(text))
    language = language_of(words)
    counted = count_stems(words, language)
    counted[library_word(library_id)] = 1
    return ChunkWords(counted, language)


def tsvector_bytes(counted: Mapping[str, int]) -> bytes:
    """Return the binary form of a tsvector (`tsvectorrecv`), for COPY.

    https://github.com/postgres/postgres/blob/master/src/backend/utils/adt/tsvector.c
    """
    # In any order: Postgres sorts them as it reads.
    lexemes = [
        word.encode() + b"\0" + _POSITIONS[min(count, MAX_COUNTED)]
        for word, count in counted.items()
    ]
    return struct.pack(">i", len(lexemes)) + b"".join(lexemes)


def tsvector_text(counted: Mapping[str, int]) -> str:
    """Return the same tsvector as a literal, for an UPDATE."""
    return " ".join(
        f"{word_literal(word)}:{','.join(map(str, range(1, min(count, MAX_COUNTED) + 1)))}"
        for word, count in counted.items()
    )


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question: each form that chunks may hold it in, and each as a tsquery.

    `tells` is false for words such as "what" and "the". `is_pair` means two characters of a script
    without spaces, which may be a word or the seam between two.
    """

    literals: tuple[str, ...]
    forms: tuple[str, ...] = ()
    tells: bool = True
    is_pair: bool = False

    @property
    def literal(self) -> str:
        """Any of the forms, as one tsquery."""
        return " | ".join(self.literals)


@dataclass(frozen=True, slots=True)
class WordsAsked:
    """A question's words, each once, and its language."""

    words: Sequence[AskedWord]
    language: str


def words_asked(
    query: str, languages: Mapping[str, int] | None = None, *, is_early: bool = False
) -> WordsAsked:
    """Return the words of a question to chunks in these languages (by how many there are).

    `is_early` says that some chunks hold the form of words that was before stems of languages. A
    lone character of a script without spaces is a prefix.
    """
    words = asked_words(query)
    known = most_common(languages or {}, MAX_LANGUAGES)
    language = language_of(words) or (known[0] if known else UNTOLD)
    known = known or [language]
    common = common_words(language) or common_words("en")
    asked: dict[str, AskedWord] = {}
    for word in words[:MAX_ASKED]:
        forms = forms_asked(word, known, is_early=is_early)
        tells = word not in common and word not in COMMON_WORDS
        literals = tuple(map(word_literal, forms))
        asked.setdefault(forms[0], AskedWord(literals, forms, tells, is_spaceless(word)))
    if not asked:
        prefixes = tsquery_literal(query, "any")
        each = prefixes.split(" | ")[:MAX_ASKED] if prefixes else []
        return WordsAsked([AskedWord((literal,)) for literal in each], language)
    return WordsAsked([*asked.values()], language)


# ts_rank('{1,1,1,1}', vector, one word) is the sum of 1/j² for j = 1 … occurrences, over π²/6.
_RANKS: Final = [total / 1.64493406685 for total in accumulate(1 / j**2 for j in range(1, 33))]
# `ts_rank` computes in 32 bits. The last two ranks are 0.0006 apart.
_TOLERANCE: Final = 1e-4


def occurrences_of(rank: float) -> int:
    """Return how often a word occurs, from `ts_rank('{1,1,1,1}', search, word)`; 0 for rank 0."""
    return 0 if rank <= 0 else bisect_left(_RANKS, rank - _TOLERANCE) + 1
