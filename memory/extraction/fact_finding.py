"""Find the durable facts about a person in what they said.

Only what the person said counts: a fact whose words do not stand in their own messages is dropped,
so that recalled text, prompts, tool results and the assistant's own words never become memories. A
model decides (`memory.extraction.extractor`); with the offline model only explicit statements are
found (`memory.extraction.explicit_statements`).

    for learnt in find(owner, messages, extractor=…):
        keep(owner, learnt)

The caller chooses the messages, and brings an embedder and a model on the owner's account.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog

from engine.provider.model import Model, ProviderError
from engine.text import tokens
from memory.extraction.explicit_statements import explicit_statements
from memory.extraction.extractor import (
    MAX_SAID_CHARS,
    ConversationText,
    Decision,
    ExtractionCall,
    decide,
)
from memory.extraction.subjects import sentences_of, subject_of, subjects_in
from memory.facts.facts import (
    MAX_COMPARED,
    EmbeddedText,
    Fact,
    RememberResult,
    known_to,
    remember,
)
from memory.facts.own_words import is_in_own_words
from memory.models import Memory
from memory.owner import Owner
from memory.recall.recall import nearest_to

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

logger = structlog.get_logger(__name__)

MAX_KNOWN: Final = 30
"""Memories that the model is shown: those of the same subjects, those near to what was said, the newest."""

MAX_SENTENCES: Final = 20
"""The last sentences of what was said, each looked up by itself: all of them together are near to nothing."""

NEAR_EACH: Final = 3

KNOWN_TOKENS: Final = 2_000
MIN_CONFIDENCE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Extractor:
    """The model and the embedder that extraction works with.

    `embed` returns (n, D) float32 and may raise ProviderError. `model` is None for the offline
    model: then explicit statements are all that is found. `on_call` gets each call of the model.
    """

    model: Model | None
    embed: "Callable[[Sequence[str]], Vectors]"
    embedding_model_id: UUID
    on_call: Callable[[ExtractionCall], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class LearntFact:
    """A fact that was found, and the memory whose place it takes, if the model said so."""

    fact: Fact
    replaces: UUID | None = None
    embedded: EmbeddedText | None = None


def find(
    owner: Owner,
    messages: Sequence[ConversationText],
    *,
    extractor: Extractor,
    assistant_id: UUID | None = None,
) -> list[LearntFact]:
    """Return the facts to keep. At most two calls of the model and two of the embedder.

    The own memories of the assistant `assistant_id` count as known, beside those for all. Without a
    working embedder words alone find what is known. Raises ProviderError when the model fails.
    """
    said = "\n".join(message.text for message in messages if message.by_user).strip()
    if not said:
        return []
    if extractor.model is None:
        learnt = _find_explicit(messages, assistant_id)
    else:
        known = _find_known(owner, said[:MAX_SAID_CHARS], extractor, assistant_id)
        texts = [memory.content for memory in known]
        decisions = decide(extractor.model, texts, messages, on_call=extractor.on_call)
        learnt = _select_usable(decisions, known, messages, assistant_id)
    vectors = _embed_texts(extractor, [each.fact.content for each in learnt])
    return [replace(each, embedded=vector) for each, vector in zip(learnt, vectors, strict=True)]


def keep(owner: Owner, learnt: LearntFact) -> tuple[Memory, RememberResult]:
    """Keep a fact that was found, as `memory.facts.facts.remember` does."""
    return remember(owner, learnt.fact, embedded=learnt.embedded, replaces=learnt.replaces)


def _embed_texts(extractor: Extractor, texts: Sequence[str]) -> list[EmbeddedText | None]:
    """Embed the texts; None where the embedder fails: such a memory gets its vector later."""
    if not texts:
        return []
    try:
        vectors = extractor.embed(texts)
    except ProviderError as error:
        logger.warning("memory_not_embedded", reason=error.code)
        return [None] * len(texts)
    return [EmbeddedText(vector, extractor.embedding_model_id) for vector in vectors]


def _find_known(
    owner: Owner, said: str, extractor: Extractor, assistant_id: UUID | None
) -> list[Memory]:
    """Return the memories that may be repeated, refined or contradicted, within KNOWN_TOKENS.

    First those of a subject that was spoken of, then what is near to one of the sentences, then the
    newest. A model that is not shown a memory cannot say that it is no longer true.
    """
    valid = known_to(owner, assistant_id).defer("vector", "search").order_by("-created_at")
    newest = list(valid[:MAX_COMPARED])
    subjects = subjects_in(said)
    known = {each.pk: each for each in newest if subject_of(each.content) in subjects}
    for memory in _find_near(owner, said, extractor, assistant_id):
        known.setdefault(memory.pk, memory)
    for memory in newest:
        known.setdefault(memory.pk, memory)
    rest_tokens = KNOWN_TOKENS
    shown = []
    for memory in list(known.values())[:MAX_KNOWN]:
        rest_tokens -= tokens.count_text(memory.content)
        if rest_tokens < 0:
            break
        shown.append(memory)
    return shown


def _find_near(
    owner: Owner, said: str, extractor: Extractor, assistant_id: UUID | None
) -> list[Memory]:
    """Return the memories nearest to each sentence, whether or not they would be recalled for it.

    One call of the embedder, up to five queries a sentence.
    """
    sentences = sentences_of(said)[-MAX_SENTENCES:]
    vectors = _embed_texts(extractor, sentences)
    found: dict[UUID, Memory] = {}
    for sentence, vector in zip(sentences, vectors, strict=True):
        near = nearest_to(
            owner, sentence, assistant_id=assistant_id, embedded=vector, limit=NEAR_EACH
        )
        found |= {memory.pk: memory for memory in near}
    return list(found.values())


def _find_explicit(
    messages: Sequence[ConversationText], assistant_id: UUID | None
) -> list[LearntFact]:
    """Return explicit statements as facts."""
    return [
        LearntFact(Fact(statement, [message.id], told_to=assistant_id))
        for message in messages
        if message.by_user
        for statement in explicit_statements(message.text)
    ]


def _select_usable(
    decisions: Sequence[Decision],
    known: Sequence[Memory],
    messages: Sequence[ConversationText],
    assistant_id: UUID | None,
) -> list[LearntFact]:
    """Return the facts that say what the user said, with the memory they replace.

    The messages that the model names as evidence must hold a fact's own words: what the assistant
    said is among what the model was shown, and it may repeat what a stranger wrote.
    """
    usable = []
    for decision in decisions:
        numbers = sorted({n for n in decision.evidence if 1 <= n <= len(messages)})
        evidence = [messages[n - 1] for n in numbers if messages[n - 1].by_user]
        content = decision.content.replace("\0", "").strip()
        is_kept = decision.action != "none" and decision.confidence >= MIN_CONFIDENCE
        if is_kept and content and is_in_own_words(content, [each.text for each in evidence]):
            ids = [each.id for each in evidence]
            fact = Fact(content, ids, decision.confidence, told_to=assistant_id)
            usable.append(LearntFact(fact, replaces=_find_replaced(decision, known)))
    return usable


def _find_replaced(decision: Decision, known: Sequence[Memory]) -> UUID | None:
    number = decision.memory
    if decision.action not in ("update", "supersede") or number is None:
        return None
    return known[number - 1].pk if 1 <= number <= len(known) else None
