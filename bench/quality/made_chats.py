"""Make chats of a year with planted facts, in five languages, from phrases and a seed.

Each fact is told of three people, so that most of a question's words fit three messages and the name
decides; some questions fit two days, and the month decides. Questions do not repeat the wording. The rest
is small talk about the same people and places. Phrases are in `phrases.json`.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from bench.quality.conversations import PlantedQuestion, RecordedConversation, SaidMessage
from bench.quality.memory_persons import UNRELATED

SESSIONS, EXCHANGES = 30, 10
"""300 exchanges in a year: a chat of 600 messages."""
PEOPLE_PER_FACT: Final = 3
TOPIC_SHARE: Final = 0.6
BEHIND: Final = 60
"""Exchanges of small talk after the last fact."""
_BEGINS: Final = datetime(2024, 1, 8, 19, 0, tzinfo=UTC)
_CODES: Final = {"English": "en", "Chinese": "zh"}
_PHRASES: Final = Path(__file__).with_name("phrases.json")


@dataclass(frozen=True, slots=True)
class _Told:
    """An exchange, and the question to it if it is a fact."""

    said: str
    answered: str
    question: str = ""


def languages() -> list[str]:
    return list(_phrases())


def unrelated_questions(language: str) -> list[str]:
    """Return questions that no chat answers: 76, in English and Chinese those to persons, too."""
    others = UNRELATED.get(_CODES.get(language, ""), ())
    return list(dict.fromkeys([*_phrases()[language]["unrelated"], *others]))


def make_chat(language: str, seed: int) -> RecordedConversation:
    """Return a chat with some forty questions; the same for the same seed."""
    phrases = _phrases()[language]
    rng = random.Random(f"{language} {seed}")
    places = rng.sample(range(SESSIONS * EXCHANGES), SESSIONS * EXCHANGES)
    planted: dict[int, _Told] = {}
    for told in _facts(phrases, rng):
        planted[places.pop()] = told
    planted |= {place: told for told, place in _dated(phrases, rng, taken=set(planted))}
    said: list[SaidMessage] = []
    questions: list[PlantedQuestion] = []
    for number in range(SESSIONS * EXCHANGES):
        told = planted.get(number) or _chatter(phrases, rng)
        at = time_of(number)
        said.append(SaidMessage(f"{number}a", "human", told.said, at))
        said.append(
            SaidMessage(f"{number}b", "assistant", told.answered, at + timedelta(seconds=9))
        )
        if told.question:
            questions.append(PlantedQuestion(told.question, [f"{number}a"]))
    return RecordedConversation(
        name=f"{language} {seed}",
        group=f"made, {language}",
        said=said,
        questions=questions,
        unrelated=unrelated_questions(language),
    )


def time_of(exchange: int) -> datetime:
    """Return when an exchange took place: ten of them in an evening, every twelve days."""
    session, place = divmod(exchange, EXCHANGES)
    return _BEGINS + timedelta(days=12 * session, minutes=2 * place)


def small_talk(at: datetime) -> Iterator[SaidMessage]:
    """Yield exchanges that tell nothing: said behind a conversation, they leave all of it to sealed blocks."""
    phrases = _phrases()["English"]
    rng = random.Random("English 1 rest")
    for number in range(BEHIND):
        told = _chatter(phrases, rng)
        yield SaidMessage(f"rest {number}a", "human", told.said, at)
        yield SaidMessage(f"rest {number}b", "assistant", told.answered, at)


def _facts(phrases: dict[str, Any], rng: random.Random) -> Iterator[_Told]:
    for said, answered, question in phrases["facts"]:
        people = rng.sample(phrases["names"], PEOPLE_PER_FACT)
        where = rng.sample(phrases["places"], PEOPLE_PER_FACT)
        for name, place in zip(people, where, strict=True):
            yield _Told(*(text.format(n=name, p=place) for text in (said, answered, question)))


def _dated(
    phrases: dict[str, Any], rng: random.Random, *, taken: set[int]
) -> Iterator[tuple[_Told, int]]:
    """Yield facts that are told twice, of the same person in two months, each with its place."""
    for said, answered, question in phrases["dated"]:
        for name in rng.sample(phrases["names"], 2):
            for month in rng.sample(range(1, 12), 2):
                free = [
                    number
                    for number in range(SESSIONS * EXCHANGES)
                    if number not in taken and time_of(number).month == month
                ]
                place = rng.choice(free)
                taken.add(place)
                when = phrases["months"][month - 1]
                texts = (text.format(n=name, d=when) for text in (said, answered, question))
                yield _Told(*texts), place


def _chatter(phrases: dict[str, Any], rng: random.Random) -> _Told:
    """Return small talk, or talk about two of a hundred topics: the words of questions among them."""
    filled = {
        "n": rng.choice(phrases["names"]),
        "p": rng.choice(phrases["places"]),
        **dict(zip("xy", rng.sample(phrases["topics"]["words"], 2), strict=True)),
    }
    if rng.random() < TOPIC_SHARE:
        said, answered = (rng.choice(phrases["topics"][kind]) for kind in ("said", "answered"))
    else:
        number = rng.randrange(len(phrases["chatter"]) // 2)
        said, answered = phrases["chatter"][2 * number : 2 * number + 2]
    return _Told(said.format(**filled), answered.format(**filled))


def _phrases() -> dict[str, Any]:
    phrases: dict[str, Any] = json.loads(_PHRASES.read_text())
    return phrases
