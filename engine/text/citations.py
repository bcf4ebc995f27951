"""Find the marks by which an answer cites passages: `[2]`, `[1, 3]`, and Chinese models' 【2】.

Pure. Which passage a number stands for is known elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MARK = re.compile(r"\[(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)\]|【(\d{1,3})】")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark and its place in the text."""

    start: int
    end: int
    numbers: tuple[int, ...]


def marks_in(text: str) -> Iterator[Mark]:
    for found in _MARK.finditer(text):
        yield Mark(found.start(), found.end(), tuple(map(int, _NUMBER.findall(found[0]))))
