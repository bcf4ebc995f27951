"""Decide what a turn looks up before it asks the model, and embed its question.

One question serves every look-up, with one embedding per embedding model. It is made only if there
is something to search, may take a second, and without it words alone must do. This module does not
decide what becomes of the findings: `chats.context.gathering` composes them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.tenant_rows import NOBODY
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import for_whole_organization
from assistants.models import ScenePrompt
from assistants.turn_config import TurnConfig
from chats.context.tail import Tail
from chats.models import Turn
from engine.context.recall import question_of
from engine.messages import ASKING_ROLES, MessageRole
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from libraries.models import Library, LibraryGrant
from memory.owner import Owner
from providers import registry
from providers.models import EmbeddingModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

logger = structlog.get_logger(__name__)

EMBEDDING_SECONDS: Final = 1.0
"""How long a turn waits for the embedding of its question; then words alone must do."""

_ONCE: Final = RetryPolicy(first_token_seconds=EMBEDDING_SECONDS, retries=0)

_EXISTS_SQL: Final = """
SELECT
    EXISTS (SELECT 1 FROM memory_memory WHERE %(uses_memory)s AND {mine} AND valid_until IS NULL),
    EXISTS (SELECT 1 FROM assistants_sceneprompt WHERE assistant_id = %(assistant)s)
"""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What there is to look up for one turn, and the question to search with.

    `question` is empty for small talk: then nothing is looked up. Blocks that end before
    `before_position` may be recalled (0: there are none). `owner` is None if memory is off or
    empty. One of `scenes` is to be chosen, unless there is a `pinned_scene`.
    """

    question: str = ""
    before_position: int = 0
    owner: Owner | None = None
    library: Library | None = None
    scenes: Sequence[ScenePrompt] = ()
    pinned_scene: ScenePrompt | None = None
    embedding_model: EmbeddingModel | None = None
    """The default model, by which blocks, memories and scenes are compared."""

    @property
    def embedding_models(self) -> list[EmbeddingModel]:
        """The models that the question is to be embedded with."""
        models = [self.embedding_model, self.library.embedding_model if self.library else None]
        return list({model.pk: model for model in models if model is not None}.values())


@dataclass(frozen=True, slots=True)
class QuestionEmbedding:
    """The question's vectors by embedding model. `problem` says why one is missing."""

    vectors: "Mapping[UUID, Vector]" = field(default_factory=dict)
    usages: Sequence[tuple[EmbeddingModel, Usage]] = ()
    problem: str = ""


def plan_lookups(
    turn: Turn, tail: Tail, turn_config: TurnConfig, library: Library | None
) -> RecallRequest:
    """Return what can be looked up: two queries, and one or two more if there is something.

    `library` is the one that the turn may search.
    """
    question = question_of([m.content for m in tail.messages if m.role in ASKING_ROLES])
    pinned = _pinned_scene(turn)
    if not question or turn.assistant is None:
        return RecallRequest(pinned_scene=pinned)
    owner = Owner.asking(turn.organization_id, turn.user_id, turn.guest_id)
    has_memories, has_scenes = _has_memories_and_scenes(
        turn, owner, uses_memory=turn_config.uses_memory
    )
    scenes = _scenes(turn) if has_scenes and pinned is None else ()
    is_searched = has_memories or scenes or tail.sealed_before
    return RecallRequest(
        question=question,
        before_position=tail.sealed_before,
        owner=owner if has_memories else None,
        library=library if not was_searched(tail) else None,
        scenes=scenes,
        pinned_scene=pinned,
        embedding_model=registry.default_embedding_model() if is_searched else None,
    )


async def embed_question(wanted: RecallRequest) -> QuestionEmbedding:
    """Embed the question within EMBEDDING_SECONDS; an embedder that fails is a `problem`, no
    error."""
    vectors: dict[UUID, Vector] = {}
    usages: list[tuple[EmbeddingModel, Usage]] = []
    problem = ""
    for model in wanted.embedding_models:
        used: list[Usage] = []
        embedder = registry.engine_embedder(model, retry_policy=_ONCE, on_usage=used.append)
        try:
            async with asyncio.timeout(EMBEDDING_SECONDS):
                vectors[model.pk] = (await embedder.embed([wanted.question]))[0]
        except TimeoutError:
            problem = "provider_timeout"
        except ProviderError as error:
            problem = error.code
        usages += [(model, usage) for usage in used]
    if problem:
        logger.warning("question_not_embedded", reason=problem)
    return QuestionEmbedding(vectors, usages, problem)


def _pinned_scene(turn: Turn) -> ScenePrompt | None:
    """Return the scene a person chose for this chat, if it is one of the answering assistant's."""
    if turn.chat is None or turn.chat.pinned_scene_id is None:
        return None
    mine = ScenePrompt.objects.filter(assistant=turn.assistant)
    with for_whole_organization():  # as long as the turn runs, also if it was closed meanwhile
        return mine.filter(pk=turn.chat.pinned_scene_id).first()


def _has_memories_and_scenes(turn: Turn, owner: Owner, *, uses_memory: bool) -> tuple[bool, bool]:
    """Whether the owner has memories, and the assistant scenes."""
    with connection.cursor() as cursor:
        cursor.execute(
            _EXISTS_SQL.format(mine=owner.condition),
            {**owner.fields, "uses_memory": uses_memory, "assistant": turn.assistant_id},
        )
        has_memories, has_scenes = cursor.fetchone()
        return has_memories, has_scenes


def was_searched(tail: Tail) -> bool:
    """Whether an earlier attempt searched the library: what it found is in the chat."""
    for message in reversed(tail.messages):
        if message.role == MessageRole.KNOWLEDGE:
            return True
        if message.role in ASKING_ROLES:
            return False
    return False


def library_of(turn: Turn, turn_config: TurnConfig) -> Library | None:
    """Return the assistant's library, while it is shared, the assistant's creator's, or granted to
    a group of whoever asks. One query."""
    if turn_config.library_id is None or turn.assistant is None:
        return None
    with for_whole_organization():  # also one that only the assistant's creator sees
        found = _usable_libraries(
            turn.is_in_person,
            library_id=turn_config.library_id,
            organization_id=turn.organization_id,
            owner_id=turn.assistant.user_id or NOBODY,
            user_id=turn.group_user_id or NOBODY,
        )
    return found[0] if found else None


@cache_sql
def _usable_libraries(
    in_person: bool,
    /,
    *,
    library_id: UUID,
    organization_id: UUID,
    owner_id: UUID,
    user_id: UUID,
) -> QuerySet[Library]:
    grants = LibraryGrant.objects.filter(library=OuterRef("pk"))
    return Library.objects.select_related("embedding_model__provider").filter(
        Q(shared=True)
        | Q(user_id=owner_id)
        | Q(Exists(grants.held_by(user_id, in_person=in_person))),
        pk=library_id,
        organization_id=organization_id,
    )


def _scenes(turn: Turn) -> Sequence[ScenePrompt]:
    return list(ScenePrompt.objects.filter(assistant=turn.assistant).order_by("created_at"))
