"""Look up what matters to a question: earlier talk, memories of the user, passages, the scene.

It looks up what `chats.context.lookups` asks for, each within its budget. It does not decide what
becomes of it in the request, except for the texts that introduce earlier talk and memories.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from django.utils import timezone

from amber.lib.search.hybrid import KeywordMatches
from assistants.models import ScenePrompt
from assistants.scenes.choice import Choice, choose_scene, vectors_of_scenes
from chats.context.block_search import PathSearch
from chats.context.composition import PromptFormat
from chats.context.knowledge import Knowledge, find_knowledge
from chats.context.lookups import RecallRequest
from chats.context.question_embedding import QuestionEmbedding
from chats.context.recall import (
    PendingRecall,
    RecalledBlock,
    RecallResult,
    choose_recalled,
    recall,
    recall_ahead,
)
from chats.models import Turn
from engine.history.prompt import MEMORIES_PROMPT, RECALL_PROMPT, mark_untrusted
from engine.provider.model import ProviderError
from libraries.embedding.store import embed_texts
from memory.facts.facts import EmbeddedText
from memory.models import Memory
from memory.recall.recall import match_words
from memory.recall.recall import recall as recall_memories
from providers.models import EmbeddingModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits of what may be found of each kind, in tokens."""

    blocks: int
    memories: int
    passages: int


@dataclass(frozen=True, slots=True)
class RetrievedContext:
    """`memories` with their relevance, best first. `scores` are those of all scenes.

    `knowledge` is None where no library was searched.
    """

    blocks: RecallResult = field(default_factory=RecallResult)
    memories: Mapping[Memory, float] = field(default_factory=dict)
    knowledge: Knowledge | None = None
    scene: ScenePrompt | None = None
    scores: Mapping[UUID, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WordFindings:
    """What words find without a vector: memories, and earlier talk if no vector would help with it.

    None stands for what is not searched.
    """

    memories: KeywordMatches | None = None
    blocks: PendingRecall | None = None


@contextmanager
def find_words(turn: Turn, wanted: RecallRequest) -> Iterator[WordFindings]:
    """Look up what words find, while the question is embedded: a query for memories, one for earlier talk.

    The second runs during the `with` block. It takes Postgres a millisecond in a long chat, in which the
    caller lays out the request's tools and form.
    """
    memories = None
    if wanted.owner is not None:
        memories = match_words(wanted.owner, wanted.question, turn.assistant_id)
    if _is_found_by_words_alone(wanted) and (search := _path_search(turn, wanted)):
        with recall_ahead(search, wanted.question, today=_today(turn)) as blocks:
            yield WordFindings(memories, blocks)
    else:
        yield WordFindings(memories)


def look_up(
    turn: Turn,
    wanted: RecallRequest,
    words: WordFindings,
    embedded: QuestionEmbedding,
    *,
    budgets: Budgets,
    encoding: str,
) -> RetrievedContext:
    """Return what matters to the question: up to three queries each for blocks, memories,
    scenes."""
    model = wanted.embedding_model
    vector = embedded.vectors.get(model.pk) if model else None
    choice = Choice(wanted.pinned_scene, {})
    if wanted.scenes and model is not None and vector is not None:
        choice = _choose_scene(turn, wanted.scenes, model, vector)
    return RetrievedContext(
        blocks=_recall_blocks(turn, wanted, words.blocks, vector, budgets.blocks),
        memories=_recall_memories(turn, wanted, words.memories, vector, budgets.memories),
        knowledge=find_knowledge(
            wanted.library,
            wanted.question,
            user_id=turn.user_id,
            limit_tokens=budgets.passages,
            encoding=encoding,
            vectors=embedded.vectors,
        )
        if wanted.library is not None
        else None,
        scene=choice.scene,
        scores=choice.scores,
    )


def _recall_blocks(
    turn: Turn,
    wanted: RecallRequest,
    pending: PendingRecall | None,
    vector: "Vector | None",
    limit_tokens: int,
) -> RecallResult:
    if pending is not None:
        return choose_recalled(pending, limit_tokens=limit_tokens)
    search = _path_search(turn, wanted, vector)
    if search is None:
        return RecallResult()
    return recall(search, wanted.question, limit_tokens=limit_tokens, today=_today(turn))


def _is_found_by_words_alone(wanted: RecallRequest) -> bool:
    """Whether no vector helps to find earlier talk: the built-in embedder only hashes words."""
    model = wanted.embedding_model
    return model is None or model.provider.is_offline


def _path_search(
    turn: Turn, wanted: RecallRequest, vector: "Vector | None" = None
) -> PathSearch | None:
    """Return what is to be searched of the chat, None if nothing."""
    if turn.chat_id is None or not wanted.before_position:
        return None
    model_id = wanted.embedding_model.pk if wanted.embedding_model else None
    return PathSearch(turn.chat_id, wanted.before_position, vector, model_id)


def _today(turn: Turn) -> date:
    """Return the day it is for whoever asks."""
    return timezone.now().astimezone(ZoneInfo(turn.user.time_zone if turn.user else "UTC")).date()


def _recall_memories(
    turn: Turn,
    wanted: RecallRequest,
    words: KeywordMatches | None,
    vector: "Vector | None",
    limit_tokens: int,
) -> Mapping[Memory, float]:
    if wanted.owner is None:
        return {}
    embedded = None
    if vector is not None and (model := wanted.embedding_model) is not None:
        embedded = EmbeddedText(vector, model.pk, is_lexical=model.provider.is_offline)
    return recall_memories(
        wanted.owner,
        wanted.question,
        assistant_id=turn.assistant_id,
        limit_tokens=limit_tokens,
        embedded=embedded,
        words=words,
        may_rerank=True,
    )


def _choose_scene(
    turn: Turn, scenes: Sequence[ScenePrompt], model: EmbeddingModel, vector: "Vector"
) -> Choice:
    """Choose a scene; none if the embedder fails, then the assistant's own prompt is used."""
    embed = partial(embed_texts, model=model, organization_id=turn.organization_id)
    try:
        vectors, anchors = vectors_of_scenes(scenes, embed)
    except ProviderError as error:
        logger.warning("scenes_not_embedded", reason=error.code)
        return Choice(None, {})
    return choose_scene(vector, vectors, anchors, previous_id=_previous_scene(turn))


def _previous_scene(turn: Turn) -> UUID | None:
    """Return the scene of the chat's previous turn. One query."""
    if turn.chat is None:
        return None
    earlier = Turn.objects.filter(chat=turn.chat, created_at__lt=turn.created_at)
    newest = earlier.order_by("-created_at").values_list("manifest__scene__id", flat=True)
    found = newest.first()
    return UUID(found) if found else None


def volatile_of(found: RetrievedContext, form: PromptFormat) -> list[str]:
    """Return the texts that differ from turn to turn: earlier talk in order, then memories."""
    facts = [memory.content for memory in found.memories]
    return volatile_texts(found.blocks.taken, facts, form)


def volatile_texts(
    blocks: Sequence[RecalledBlock], facts: Sequence[str], form: PromptFormat
) -> list[str]:
    """Return what is shown of each block, labelled with its time, then the facts as one list. Pure."""
    zone = ZoneInfo(form.time_zone)
    texts = [_label_block(block, zone, form.mark) for block in blocks]
    if facts:
        listed = "\n".join(f"- {fact}" for fact in facts)
        texts.append(f"{MEMORIES_PROMPT}\n{mark_untrusted(listed, form.mark)}")
    return texts


def _label_block(block: RecalledBlock, zone: tzinfo, mark: str) -> str:
    first, last = block.said_between
    begins = _minute_of(first, zone)
    ends = _minute_of(last, zone) if last != first else begins
    label = RECALL_PROMPT.format(begins=begins, ends=ends)
    return f"{label}\n{mark_untrusted(block.text_in(zone), mark)}"


def _minute_of(said: int, zone: tzinfo) -> str:
    """Return a time on the clock of `zone`: 2026-03-01 09:15."""
    return datetime.fromtimestamp(said, zone).isoformat(" ", "minutes")[: len("2026-03-01 09:15")]
