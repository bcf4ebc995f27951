"""Cut a text into words for full-text search: the same tokens for stored texts and for queries.

Postgres' parser is not used: `to_tsvector` makes C++ into c and cuts part numbers up. Here:

- NFKC, lower case; invisible characters (soft hyphens, joiners, variation selectors) are dropped.
- Scripts written without spaces (Chinese, Japanese; Hangul, Thai, Lao, Khmer, Burmese too): every
  pair of neighbours, and each run's last character alone. A line break does not end a run.
- Other words whole, `+` and `#` kept where they name something (C++, C#, but not in 10+).
- Compounds (foo_bar.baz, AB-1234/5.6, getUserName): whole, in parts, and each two neighbouring
  parts. The pairs let `foo_bar` and `bar.baz` find `foo_bar.baz` without counting positions,
  which Postgres stops doing at 16,383. Names as JavaScript or GitHub (two humps) stay whole.

A query asks for pairs only; a single character of a spaceless script is a prefix, so it is found
wherever it stands. Pure; linear in the text. No stemming and no stop words: there is no one
language to choose them for.

Literal syntax and limits: https://www.postgresql.org/docs/18/datatype-textsearch.html and
textsearch-limitations.html.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import add
from typing import Any, Final, Literal

import regex  # type: ignore[import-untyped]

MAX_TOKEN_BYTES: Final = 500
MAX_POSITION: Final = 16_383
# Postgres keeps 256; ts_rank gains nothing after the first few dozen.
MAX_POSITIONS_PER_TOKEN: Final = 64
# Postgres refuses 1,048,575 bytes of lexemes and positions. What does not fit is not found.
MAX_VECTOR_BYTES: Final = 1_000_000
# A question has a dozen; a pasted page as a query would otherwise cost a page of index look-ups.
MAX_QUERY_TERMS: Final = 128
MAX_QUERY_PAIRS: Final = 32
# Postgres refuses a tsquery whose words fill 1 MB.
MAX_QUERY_BYTES: Final = 250_000
# Longer "words" are encoded data; their humps mean nothing.
MAX_CAMEL_CHARS: Final = 64
# A longer chain counts as several compounds.
MAX_PARTS: Final = 256

_SPACELESS = (
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u30FC"
    r"\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}"
)
_LETTER = rf"[[\p{{L}}\p{{N}}]--[{_SPACELESS}]]"
_INNER = rf"[[\p{{L}}\p{{N}}\p{{M}}]--[{_SPACELESS}]]"
# `+` and `#` belong to the word at its end (C++, C#), and in C++11 and C#7; else they join or end.
_SIGNS = rf"(?<=\p{{L}})[+#]{{1,3}}+(?!{_LETTER})|\+\+(?={_LETTER})|(?<=\b\p{{L}})\#(?=\p{{N}})"
_PART = rf"{_LETTER}{_INNER}*+(?:{_SIGNS})?"
_JOINER = r"[_.\-/:@&\\+#]{1,2}+"
_FLAGS = regex.VERSION1

_TOKEN = regex.compile(
    rf"(?P<run>[{_SPACELESS}]++)"
    rf"|(?P<compound>{_PART}(?:(?:{_JOINER}|(?<=[+#])){_PART}){{0,{MAX_PARTS - 1}}}+)",
    _FLAGS,
)
_PARTS = regex.compile(_PART, _FLAGS)
# Capitals are looked through from their first one alone: from each, a long run would be quadratic.
_HUMPS = regex.compile(r"(?<!\p{Lu})\p{Lu}++(?!\p{Ll})|\p{Lu}?\p{Ll}++|[^\p{Lu}\p{Ll}]++", _FLAGS)
_CLITICS = regex.compile(
    r"(?<=\p{L})['’](?:s|d|m|ll|re|ve)\b"
    r"|\b(?:ca|wo|sha|do|does|did|is|are|was|were|has|have|had|could|would|should)n['’]t\b",
    regex.IGNORECASE,
)
_INVISIBLE = regex.compile(r"[\u00AD\u200C\u200D\u2060\uFEFF\uFE00-\uFE0F\U000E0100-\U000E01EF]")
# What stands between two spaces is cut alone and remembered, unless it is longer than a word is, or there
# are characters of which a run may go on behind a line break.
_MAY_BE_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u19e0-\u19ff\u2e80-\U0010ffff]"
)
_MAX_REMEMBERED_CHARS = 64
_MAX_REMEMBERED = 20_000
# Not even pairs of characters, all parts and their pairs fill a tsvector.
_SURELY_FITTING_CHARS = 10_000
# Plain words are cut ten times as fast by `re`.
_PLAIN = re.compile(r"[a-z0-9]+")
_NOT_PLAIN = re.compile(
    r"[A-Za-z0-9](?:[A-Z]|[_.\-/:@&\\+#]{1,2}[A-Za-z0-9])|[A-Z][a-z]*[0-9]|[A-Za-z][+#]"
)
_BREAK_IN_RUN = regex.compile(
    rf"(?<=[{_SPACELESS}])[\ \t]*+\r?\n[\ \t]*+(?=[{_SPACELESS}])", _FLAGS
)
_DASH = regex.compile(r"[\u2010-\u2013\u2212]")
# Unicode's stream-safe limit (UAX #15, section 13): sorting longer runs of marks is quadratic.
_TOO_MANY_MARKS = regex.compile(r"(\p{M}{30})\p{M}++")

Mode = Literal["all", "any"]


def tsvector_literal(text: str) -> str:
    """Return `'c++':1,5 'foo_bar.baz':2`, for `%s::tsvector`; empty if the text has no words."""
    positions: dict[str, list[int]] = {}
    size_bytes = 0
    for token, position in _stored_tokens(text):
        known = positions.get(token)
        if known is None:
            # The lexeme, its entry, the count and first position, and alignment.
            size_bytes += len(token.encode()) + 10
            positions[token] = [position]
        elif len(known) < MAX_POSITIONS_PER_TOKEN and known[-1] != position:
            size_bytes += 2
            known.append(position)
        if size_bytes > MAX_VECTOR_BYTES:
            break
    return " ".join(
        f"{_quote(token)}:{','.join(map(str, sorted(at)))}" for token, at in positions.items()
    )


def tsquery_literal(query: str, mode: Mode = "all") -> str | None:
    """Return `'健康' & 'c++'`, for `%s::tsquery`; None if the query has no words.

    "all": every word must be there, compounds as they are written. "any": one of the words or of
    their parts is enough; for ranking.
    """
    terms: dict[str, None] = {}
    size_bytes = 0
    for term in _asked_terms(query, mode):
        terms[term] = None
        size_bytes += len(term.encode())
        if len(terms) == MAX_QUERY_TERMS or size_bytes > MAX_QUERY_BYTES:
            break
    return (" & " if mode == "all" else " | ").join(terms) or None


def stored_words(text: str) -> Iterator[str]:
    """Yield the tokens of a text in order, repeated as they occur, as far as one tsvector can
    hold."""
    if len(text) > _SURELY_FITTING_CHARS:
        return _fitting(_cut_text(text))
    if text.isascii() or not _MAY_BE_SPACELESS.search(text):
        return chain.from_iterable(map(_words_by_part.__getitem__, text.split()))
    return _cut_text(text)


class _WordsByPart(dict[str, Sequence[str]]):
    """Cuts up what stands between spaces, and remembers it: a cut costs 4 µs, and a few thousand parts
    make up most of any text."""

    def __missing__(self, part: str) -> Sequence[str]:
        if len(part) > _MAX_REMEMBERED_CHARS:
            return tuple(_cut_text(part))
        if part.isascii() and not _NOT_PLAIN.search(part):
            words = tuple(_PLAIN.findall(part.lower()))
        else:
            words = tuple(_cut_text(part))
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        self[part] = words
        return words


_words_by_part: Final = _WordsByPart()


def _cut_text(text: str) -> Iterator[str]:
    steps = chain.from_iterable(map(_steps_of, _TOKEN.finditer(_normalise(text))))
    return chain.from_iterable(steps)


def _fitting(tokens: Iterable[str]) -> Iterator[str]:
    size_bytes = 0
    for token in tokens:
        size_bytes += len(token.encode()) + 10
        if size_bytes > MAX_VECTOR_BYTES:
            return
        yield token


def _steps_of(match: Any) -> Iterable[Sequence[str]]:
    """Return the tokens at each position of a run or a compound, as they are stored."""
    if match["run"]:
        return _run_tokens(match[0])
    return _known_steps(match[0]) if len(match[0]) <= MAX_CAMEL_CHARS else _cut_up(match[0])


@lru_cache(maxsize=10_000)
def _known_steps(compound: str) -> Sequence[Sequence[str]]:
    return _cut_up(compound)


def _cut_up(compound: str) -> Sequence[Sequence[str]]:
    return tuple(tuple(map(_cut, tokens)) for tokens in _compound_tokens(compound))


def asked_words(query: str) -> list[str]:
    """Return the words that "any" asks for, each once and as it is stored.

    A single character of a spaceless script is left out: it is stored alone only at a run's end. So is what
    English hangs on a word: "Ann's", "who'll", "didn't".
    """
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(_CLITICS.sub(" ", _normalise(query))):
        run = match["run"]
        tokens = (
            map(_cut, map("".join, pairwise(run))) if run else chain.from_iterable(_steps_of(match))
        )
        found |= dict.fromkeys(tokens)
        if len(found) >= MAX_QUERY_TERMS:
            break
    return list(found)[:MAX_QUERY_TERMS]


def word_literal(word: str) -> str:
    """Return one stored word as a tsquery."""
    return _quote(_cut(word))


def stored_word(word: str) -> str:
    """Return a word as indexes hold it, with nothing quoted."""
    return _cut(word)


def _stored_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield (token, position); positions count words from 1 and stop growing at MAX_POSITION."""
    position = 0
    for match in _TOKEN.finditer(_normalise(text)):
        for tokens in _steps_of(match):
            position = min(position + 1, MAX_POSITION)
            for token in tokens:
                yield token, position


def _run_tokens(run: str) -> Iterator[tuple[str]]:
    """Return the token at each position: these scripts have no capitals."""
    return zip(chain(map(add, run, run[1:]), run[-1:]))


def _compound_tokens(compound: str) -> Iterator[list[str]]:
    """Yield the tokens at each part's position: the part, its humps, its pair; first the whole."""
    spans = [part.span() for part in _PARTS.finditer(compound)]
    for index, (start, end) in enumerate(spans):
        tokens = [compound[start:end]]
        if index == 0 and len(spans) > 2:
            tokens.append(compound[: MAX_TOKEN_BYTES + 1])
        if index + 1 < len(spans):
            tokens.append(compound[start : spans[index + 1][1]])
        humps = _humps(compound[start:end])
        tokens += humps
        tokens += [first + second for first, second in pairwise(humps)]
        yield tokens


def _humps(word: str) -> list[str]:
    """Split getUserName into get, User, Name; empty for words that are one name (JavaScript)."""
    if len(word) > MAX_CAMEL_CHARS or word.islower() or word.isupper():
        return []
    humps: list[str] = _HUMPS.findall(word)
    is_camel = len(humps) == 2 and len(humps[0]) > 1 and humps[0].islower() and humps[1].isalpha()
    return humps if len(humps) > 2 or is_camel else []


def _asked_terms(query: str, mode: Mode) -> Iterator[str]:
    for match in _TOKEN.finditer(_normalise(query)):
        run = match["run"]
        if run is None:
            yield from _compound_terms(match[0], mode)
            continue
        if len(run) == 1:
            yield f"{_quote(run)}:*"
        for first, second in pairwise(run):
            yield _quote(_cut(first + second))


def _compound_terms(compound: str, mode: Mode) -> Iterator[str]:
    spans = [part.span() for part in _PARTS.finditer(compound)]
    pairs = [compound[one[0] : two[1]] for one, two in pairwise(spans)]
    if mode == "any":
        for tokens in _compound_tokens(compound):
            yield from (_quote(_cut(token)) for token in tokens)
    elif len(pairs) > 1:
        whole = _quote(_cut(compound[: MAX_TOKEN_BYTES + 1]))
        every_pair = " & ".join(_quote(_cut(pair)) for pair in pairs[:MAX_QUERY_PAIRS])
        yield f"({whole} | ({every_pair}))"
    else:
        yield _quote(_cut(pairs[0] if pairs else compound))


def _normalise(text: str) -> str:
    """Normalise to NFKC, with whole runs; not in lower case, since camelCase must stay visible."""
    if text.isascii():
        return text
    text = str(_INVISIBLE.sub("", text))
    text = unicodedata.normalize("NFKC", _TOO_MANY_MARKS.sub(r"\1", text))
    return str(_BREAK_IN_RUN.sub("", _DASH.sub("-", text)))


def _cut(token: str) -> str:
    """Return a token in lower case (one sigma), cut to MAX_TOKEN_BYTES of UTF-8."""
    lower = token[: MAX_TOKEN_BYTES + 1].lower().replace("ς", "σ")
    if len(lower) * 4 <= MAX_TOKEN_BYTES:
        return lower
    return lower.encode()[:MAX_TOKEN_BYTES].decode(errors="ignore")


def _quote(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
