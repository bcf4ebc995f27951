"""Measure memory: what becomes known of a person, and what of it is recalled for a question.

A person tells each fact ("remember that …") and is asked; then they tell what has changed, and are asked
again. What they say goes through `memory.extraction`, as after a turn, and questions through
`memory.recall`, as in one.

    direct        of the questions with a word of the fact, how many find it
    paraphrase    of those in other words
    false_recall  of the questions that no fact answers, for how many something is recalled
    stale         of the changes, after how many the old fact is recalled for the fact's own questions
    wrong         of all facts told, how many were superseded though they still hold
    shown         of the changes that only a model can tell, for how many the model is shown the fact that
                  they make untrue, among more than it can be shown
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from amber.lib.ids import new_id
from bench.loadgen import say
from bench.quality.concept_embedder import ConceptEmbedder
from bench.quality.embedders import RealEmbedder
from bench.quality.memory_persons import (
    FACTS_EACH,
    FILLERS,
    LANGUAGES,
    TOLD_OTHERWISE,
    UNRELATED,
    Person,
    make_persons,
)
from bench.quality.options import QualityOptions
from bench.quality.tables import Table
from bench.quality.tenant import new_organization
from engine.provider.model import ModelProfile, ModelRequest, ReplyEnd, ReplyPart, TextChunk, Usage
from memory.extraction.extractor import ConversationText
from memory.extraction.fact_finding import Extractor, find, keep
from memory.facts.facts import EmbeddedText, Fact, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from memory.recall.calibration import calibrate
from memory.recall.recall import recall

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Embed = Callable[[Sequence[str]], NDArray[np.float32]]

PERSONS: Final = 12
MEMORY_TOKENS: Final = 600
"""AMBER_MEMORY_TOKENS as it comes."""

TELLING: Final = {"en": "Remember that {}.", "zh": "请记住：{}。"}


@dataclass(frozen=True, slots=True)
class MemoryQuality:
    """Shares of 0 to 1, over all persons of a language."""

    direct: float
    paraphrase: float
    false_recall: float
    stale: float
    wrong: float
    shown: float


@dataclass(frozen=True, slots=True)
class Rememberer:
    """One person's memory, with the embedder that it is searched by; without one by words alone."""

    owner: Owner
    embed: "Embed | None"
    model_id: UUID

    def tell(self, said: str, *, language: str) -> None:
        """Say it in a chat: what is explicit in it is kept."""
        message = ConversationText(uuid4(), True, TELLING[language].format(said))
        for learnt in find(self.owner, [message], extractor=self._extractor()):
            keep(self.owner, learnt)

    def know(self, statement: str) -> None:
        """Keep a statement as it is, whatever was said."""
        remember(self.owner, Fact(statement), embedded=self._embed_one(statement))

    def ask(self, question: str) -> list[str]:
        """Return what a turn would be told."""
        embedded = self._embed_one(question)
        found = recall(self.owner, question, limit_tokens=MEMORY_TOKENS, embedded=embedded)
        return [memory.content for memory in found]

    def shown_to_model(self, said: str) -> str:
        """Return what is known already, as a model that extracts facts is shown it."""
        model = _ListeningModel()
        find(self.owner, [ConversationText(uuid4(), True, said)], extractor=self._extractor(model))
        return model.shown.partition("</known>")[0]

    def forget_all(self) -> None:
        Memory.objects.filter(**self.owner.fields).delete()

    def holds(self) -> set[str]:
        return set(valid_of(self.owner).values_list("content", flat=True))

    def _extractor(self, model: "_ListeningModel | None" = None) -> Extractor:
        return Extractor(
            model=model, embed=self.embed or _embed_nothing, embedding_model_id=self.model_id
        )

    def _embed_one(self, text: str) -> EmbeddedText | None:
        return EmbeddedText(self.embed([text])[0], self.model_id) if self.embed else None


def measure(options: QualityOptions) -> list[Table]:
    """Return one table for each language."""
    embedders: dict[str, Embed | None] = {
        "words": None,
        "words and concepts": ConceptEmbedder().embed,
    }
    if options.embedder is not None:
        embedders[f"words and {options.embedder.model}"] = RealEmbedder(options.embedder).embed
    tables = []
    for language in LANGUAGES:
        persons = make_persons(language, PERSONS // 4 if options.quick else PERSONS)
        rows = []
        for name, embed in embedders.items():
            say(f"  {language}, {name}")
            with new_organization() as (organization, user):
                owner = Owner(organization.pk, user.pk)
                quality = measure_memory(persons, owner, embed=embed, model_id=new_id())
            rows.append([name, *(100 * share for share in astuple(quality))])
        tables.append(_table(language, len(persons), rows))
    return tables


def _table(language: str, persons: int, rows: Sequence[Sequence[Any]]) -> Table:
    return Table(
        f"memories, {language}: {persons} persons of {FACTS_EACH} facts",
        ["", *(field.name.replace("_", " ") for field in fields(MemoryQuality))],
        rows,
        notes=[
            "words and concepts: a stand-in for an embedding model, which knows these texts' synonyms"
        ],
    )


def measure_memory(
    persons: Sequence[Person], owner: Owner, *, embed: "Embed | None" = None, model_id: UUID
) -> MemoryQuality:
    """Measure persons of one language, one after the other in the place of this owner."""
    if embed is not None:
        calibrate(model_id, embed)
    memory = Rememberer(owner, embed, model_id)
    language = persons[0].language
    tallies = [_measure_person(person, memory) for person in persons]
    return MemoryQuality(
        **{name: _share(hit for tally in tallies for hit in tally[name]) for name in tallies[0]},
        shown=_share(_is_shown(memory, *change, language) for change in TOLD_OTHERWISE[language]),
    )


def _measure_person(person: Person, memory: Rememberer) -> dict[str, list[bool]]:
    memory.forget_all()
    for fact in person.facts:
        memory.tell(fact.statement, language=person.language)
    tally = {
        "direct": [fact.statement in memory.ask(fact.direct) for fact in person.facts],
        "paraphrase": [fact.statement in memory.ask(fact.paraphrase) for fact in person.facts],
        "false_recall": [bool(memory.ask(each)) for each in UNRELATED[person.language]],
    }
    changed = [fact for fact in person.facts if fact.update]
    for fact in changed:
        memory.tell(fact.update, language=person.language)
    held = memory.holds()
    still_true = {fact.update or fact.statement for fact in person.facts}
    return tally | {
        "stale": [
            fact.statement in {*memory.ask(fact.direct), *memory.ask(fact.paraphrase)}
            for fact in changed
        ],
        "wrong": [statement not in held for statement in sorted(still_true)],
    }


def _is_shown(memory: Rememberer, known: str, said: str, language: str) -> bool:
    """Return whether a model is shown what `said` makes untrue, though it was told long ago."""
    memory.forget_all()
    for statement in (known, *FILLERS[language]):
        memory.know(statement)
    return known in memory.shown_to_model(said)


def _share(hits: Iterable[bool]) -> float:
    counted = list(hits)
    return sum(counted) / len(counted)


def _embed_nothing(texts: Sequence[str]) -> "NDArray[np.float32]":
    from engine.provider.faults import fault

    raise fault("provider_unavailable")


class _ListeningModel:
    """A model that keeps what it is shown, and finds nothing in it."""

    profile = ModelProfile("listening")

    def __init__(self) -> None:
        self.shown = ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        self.shown = str(request.messages[-1]["content"])
        yield TextChunk('{"facts": []}')
        yield ReplyEnd("stop", Usage())
