"""Make persons whose facts are known, and questions about them: the data of the memory measure.

A person is some twenty facts, drawn with a seed from the tables of `persons.json`. Each fact has a statement, a
direct question (which shares a word with it), a paraphrase (which shares none that tells anything),
and, where its kind has one value at a time, an update in other words. Questions that no fact answers
are common to all: trivia, code, travel, cooking, sums. Pure: the same seed gives the same persons.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """One kind of fact: `{}` stands for its value. Without `update` both values can be true."""

    statement: str
    values: Sequence[str]
    direct: str
    paraphrase: str
    update: str = ""


@dataclass(frozen=True, slots=True)
class PersonFact:
    """A fact of one person; `update`, if there is one, makes `statement` untrue."""

    statement: str
    direct: str
    paraphrase: str
    update: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """A person with their facts, in one language."""

    language: str
    facts: Sequence[PersonFact]


FACTS_EACH: Final = 20
"""Enough that the right one must be chosen, and few enough for a few months of talking."""

_TABLES: Final = json.loads(Path(__file__).with_name("persons.json").read_text("utf-8"))

LANGUAGES: Final[Mapping[str, Sequence[FactTemplate]]] = {
    language: [FactTemplate(**fact) for fact in facts]
    for language, facts in _TABLES["facts"].items()
}
UNRELATED: Final[Mapping[str, Sequence[str]]] = _TABLES["unrelated"]
"""What no fact above answers, though some share a word with one."""

TOLD_OTHERWISE: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    language: [(known, said) for known, said in pairs]
    for language, pairs in _TABLES["told_otherwise"].items()
}
"""What a person knows to be true, and what they say later in words that only a model understands."""

FILLERS: Final[Mapping[str, Sequence[str]]] = {
    "en": tuple(
        f"I own a {how} {what}"
        for how in ("wooden", "green", "rusty", "tiny", "striped", "broken", "folding", "antique")
        for what in (
            "lamp",
            "chair",
            "kettle",
            "umbrella",
            "violin case",
            "globe",
            "ladder",
            "vase",
        )
    ),
    "zh": tuple(
        f"我有一个{how}的{what}"
        for how in ("木头", "绿色", "生锈", "很小", "条纹", "坏了", "折叠", "古董")
        for what in ("台灯", "椅子", "水壶", "雨伞", "琴盒", "地球仪", "梯子", "花瓶")
    ),
}
"""What else a person owns: more facts than a model is shown."""


def make_persons(language: str, count: int, *, seed: int = 13) -> list[Person]:
    """Return persons of one language, each with FACTS_EACH facts of different kinds."""
    drawn = random.Random(f"{seed}:{language}")
    return [
        Person(
            language, [_make_fact(t, drawn) for t in drawn.sample(LANGUAGES[language], FACTS_EACH)]
        )
        for _ in range(count)
    ]


def _make_fact(template: FactTemplate, drawn: random.Random) -> PersonFact:
    value, other = drawn.sample(template.values, 2)
    return PersonFact(
        template.statement.format(value),
        template.direct,
        template.paraphrase,
        template.update.format(other) if template.update else "",
    )
