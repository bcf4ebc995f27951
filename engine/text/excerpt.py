"""Cut a long document to what a question needs: its beginning, and the parts that have its words.

Pure. Parts stand in the document's order, each under the mark of its page, with a mark where
something was left out. What is rare in the document counts for more: a word that every part has
tells none of them apart.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.text.lexical import features
from engine.text.tokens import at_most_tokens, count_text

LEFT_OUT: Final = "[…]"
PAGE_MARK: Final = "[page {}]"

_PART_CHARS: Final = 1_600
"""Some 400 tokens: a few paragraphs."""
_BEGINNING_SHARE: Final = 0.25
_MOST_BYTES_OF_TOKEN: Final = 12
"""On average over a long text; what is longer by that is not counted to be known as too long."""
_MAX_FEATURES: Final = 64
_MARK: Final = re.compile(r"^\[page \d{1,6}\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Cut:
    start: int
    end: int
    mark: str
    tokens: int


def mark_pages(text: str, starts: tuple[int, ...]) -> str:
    """Return the text with a mark in front of each page; `starts` are the offsets of the pages."""
    ends = (*starts[1:], len(text))
    pages = (text[start:end].strip() for start, end in zip(starts, ends, strict=False))
    marked = [f"{PAGE_MARK.format(n)}\n{page}" for n, page in enumerate(pages, start=1) if page]
    return "\n\n".join(marked) if starts else text


def excerpt(text: str, *, question: str, limit_tokens: int, encoding: str) -> str:
    """Return the text if it has at most so many tokens, else the parts of it that matter most.

    Costs 20 ms for a million characters, and counts the tokens of what it returns.
    """
    if _fits(text, limit_tokens, encoding):
        return text
    parts = list(_parts(text, encoding))
    chosen: set[int] = set()
    left = limit_tokens - count_text(LEFT_OUT, encoding)
    opening = limit_tokens * _BEGINNING_SHARE
    wanted = (*range(len(parts)),) if not question else (*_by_relevance(text, parts, question),)
    for number in (*_beginning(parts, opening), *wanted):
        if number not in chosen and parts[number].tokens <= left:
            chosen.add(number)
            left -= parts[number].tokens
    return _join(text, parts, sorted(chosen))


def _fits(text: str, limit_tokens: int, encoding: str) -> bool:
    most = at_most_tokens(text)
    if most <= limit_tokens:
        return True
    if most > limit_tokens * _MOST_BYTES_OF_TOKEN:
        return False
    return count_text(text, encoding) <= limit_tokens


def _parts(text: str, encoding: str) -> Iterator[_Cut]:
    """Yield parts of about _PART_CHARS, cut behind paragraphs, lines or words where there are any.

    Tokens are estimated by those of the beginning, and never too few by more than its parts differ.
    """
    sample = text[: 20 * _PART_CHARS]
    per_char = 1.15 * count_text(sample, encoding) / len(sample)
    overhead = count_text(f"{LEFT_OUT}\n{PAGE_MARK.format(1_000)}\n\n", encoding)
    start, mark = 0, ""
    while start < len(text):
        end = _end_of_part(text, start)
        marks = _MARK.findall(text[start:end])
        tokens = math.ceil((end - start) * per_char) + overhead
        yield _Cut(start, end, mark, tokens)
        mark = marks[-1] if marks else mark
        start = end


def _end_of_part(text: str, start: int) -> int:
    most = start + _PART_CHARS
    if most >= len(text):
        return len(text)
    for separator in ("\n\n", "\n", " "):
        end = text.rfind(separator, start + _PART_CHARS // 2, most)
        if end > 0:
            return end + len(separator)
    return most


def _beginning(parts: list[_Cut], limit_tokens: float) -> Iterator[int]:
    used = 0
    for number, part in enumerate(parts):
        used += part.tokens
        if used > limit_tokens:
            return
        yield number


def _by_relevance(text: str, parts: list[_Cut], question: str) -> list[int]:
    """Return the numbers of the parts, those with the question's rarest words first."""
    folded = [text[part.start : part.end].casefold() for part in parts]
    scores = [0.0] * len(parts)
    weighted = sorted(features(question).items(), key=lambda item: -item[1])[:_MAX_FEATURES]
    for feature, weight in weighted:
        word = feature.rstrip("…")
        having = [number for number, part in enumerate(folded) if word in part]
        rarity = math.log((len(parts) + 1) / (len(having) + 0.5)) if having else 0.0
        for number in having:
            scores[number] += weight * max(rarity, 0.0)
    return sorted(range(len(parts)), key=lambda number: -scores[number])


def _join(text: str, parts: list[_Cut], chosen: list[int]) -> str:
    said: list[str] = []
    before = -1
    for number in chosen:
        part = parts[number]
        if number != before + 1:
            said.append("\n".join(filter(None, [LEFT_OUT, part.mark])))
        said.append(text[part.start : part.end].strip())
        before = number
    if before != len(parts) - 1:
        said.append(LEFT_OUT)
    return "\n\n".join(said)
