"""Count the words of chunks for full-text search, and pick those of a question.

Words are those of `amber.lib.search.words`, as stems; a chunk is found by its document's name and
its headings too. Where a word stands is not kept, only how often it occurs: a lexeme's positions
are 1, 2, … up to that number, and `occurrences_of` reads it from the `ts_rank` of one word. One
more lexeme names the library, so that the one GIN index of the table answers for one library as if
it had an index of its own, however much others hold.
"""

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from uuid import UUID

from amber.lib.search.hybrid import stem
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


def chunk_words(library_id: UUID, *texts: str) -> Counter[str]:
    """Count each word in the texts together; the library's own word counts once."""
    counted = Counter(stem(word) for text in texts for word in stored_words(text))
    counted[library_word(library_id)] = 1
    return counted


def tsvector_bytes(counted: Mapping[str, int]) -> bytes:
    """Return the binary form of a tsvector (`tsvectorrecv`), for COPY.

    https://github.com/postgres/postgres/blob/master/src/backend/utils/adt/tsvector.c
    """
    lexemes = [
        word.encode() + b"\0" + _POSITIONS[min(count, MAX_COUNTED)]
        for word, count in counted.items()
    ]
    return struct.pack(">i", len(lexemes)) + b"".join(lexemes)


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question, with its `literal` as a tsquery.

    `tells` is false for words such as "what" and "the". `is_pair` means two characters of a script
    without spaces, which may be a word or the seam between two.
    """

    literal: str
    tells: bool = True
    is_pair: bool = False


def words_asked(query: str) -> list[AskedWord]:
    """Return the words of a question, each once; an empty list for none.

    A lone character of a script without spaces is a prefix.
    """
    words = {stem(word): word not in COMMON_WORDS for word in asked_words(query)}
    if words:
        asked = words.items()
        known = [AskedWord(word_literal(w), tells, is_spaceless(w)) for w, tells in asked]
        return known[:MAX_ASKED]
    prefixes = tsquery_literal(query, "any")
    return [AskedWord(each) for each in prefixes.split(" | ")[:MAX_ASKED]] if prefixes else []


# ts_rank('{1,1,1,1}', vector, one word) is the sum of 1/j² for j = 1 … occurrences, over π²/6.
_RANKS: Final = [total / 1.64493406685 for total in accumulate(1 / j**2 for j in range(1, 33))]
_TOLERANCE: Final = 1e-4


def occurrences_of(rank: float) -> int:
    """Return how often a word occurs, from `ts_rank('{1,1,1,1}', search, word)`; 0 for rank 0."""
    return 0 if rank <= 0 else bisect_left(_RANKS, rank - _TOLERANCE) + 1
