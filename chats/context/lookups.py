"""Decide what a turn looks up before it asks the model.

One question serves every look-up, with one embedding per embedding model, which is made only if there
is something to compare it with (`chats.context.question_embedding`). What needs no messages to be
decided is decided before any are read, so that the question can be embedded meanwhile. This module does
not decide what becomes of the findings: `chats.context.gathering` composes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.tenant_rows import NOBODY
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import for_whole_organization
from assistants.models import ScenePrompt
from assistants.turn_config import TurnConfig
from chats.context.tail import Tail, blocks_in
from chats.messages.block_paths import newest_blocks_sql, path_of_blocks
from chats.models import Turn
from engine.context.blocks import SealedBlock, tail_start
from engine.context.recall import question_of
from engine.messages import ASKING_ROLES, MessageRole
from engine.text.small_talk import is_small_talk
from libraries.models import Library, LibraryGrant
from memory.owner import Owner
from providers import registry
from providers.models import EmbeddingModel

# OFFSET 0 keeps the planner from asking for each of them twice.
_PLACES_SQL: Final = """
SELECT around.*, model.* FROM (
    SELECT
        EXISTS (
            SELECT FROM memory_memory WHERE %(uses_memory)s AND {mine} AND valid_until IS NULL
        ) AS has_memories,
        EXISTS (SELECT FROM assistants_sceneprompt WHERE assistant_id = %(assistant)s) AS has_scenes,
        {blocks} AS blocks
    OFFSET 0
) AS around LEFT JOIN LATERAL (
    SELECT * FROM ({model}) AS model
    WHERE has_memories OR has_scenes OR blocks[1][3] + blocks[1][4] >= %(tail_tokens)s
) AS model ON true
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
        return models_for(self.embedding_model, self.library, has_scenes=bool(self.scenes))


@dataclass(frozen=True, slots=True)
class SearchPlaces:
    """Where a turn may search, as far as that is known before its messages are read.

    `blocks` are the newest ones of its path, oldest first: they tell where the tail begins. `embedding_model` is
    None if neither memories, scenes nor blocks before the tail are there.
    """

    library: Library | None
    owner: Owner
    has_memories: bool
    has_scenes: bool
    blocks: Sequence[SealedBlock]
    embedding_model: EmbeddingModel | None

    @property
    def embedding_models(self) -> list[EmbeddingModel]:
        """The models that these places need, whatever the question is."""
        return models_for(self.embedding_model, self.library, has_scenes=self.has_scenes)


def models_for(
    default: EmbeddingModel | None, library: Library | None, *, has_scenes: bool
) -> list[EmbeddingModel]:
    """Return the models that a question is embedded with, each once.

    The built-in one hashes words: beside the words themselves it helps scenes and libraries alone.
    """
    if default is not None and default.provider.is_offline and not has_scenes:
        default = None
    models = [default, library.embedding_model if library else None]
    return list({model.pk: model for model in models if model is not None}.values())


def find_places(turn: Turn, turn_config: TurnConfig) -> SearchPlaces:
    """Return where the turn may search: up to two queries; for small talk only its library and its path."""
    library = library_of(turn, turn_config)
    owner = Owner.asking(turn.organization_id, turn.user_id, turn.guest_id)
    is_small = turn.question is not None and is_small_talk(turn.question.content)
    is_asking = turn.assistant is not None and not is_small
    if not is_asking and turn.chat is None:
        return SearchPlaces(library, owner, False, False, (), None)
    uses_memory = is_asking and turn_config.uses_memory
    has_memories, has_scenes, blocks, model = _read_places(
        turn, owner, uses_memory=uses_memory, uses_scenes=is_asking
    )
    if turn.chat is not None and turn.chat.pinned_scene_id is not None:
        has_scenes = False
    is_long = bool(tail_start(blocks, limit_tokens=settings.AMBER_CONTEXT_TAIL_TOKENS))
    if not is_asking or not (has_memories or has_scenes or is_long):
        model = None
    return SearchPlaces(library, owner, has_memories, has_scenes, blocks, model)


def plan_lookups(turn: Turn, tail: Tail, places: SearchPlaces) -> RecallRequest:
    """Return what to look up. Makes no query but one for each kind of thing that is there."""
    pinned = _pinned_scene(turn)
    is_lost = _is_pin_lost(turn, pinned)
    somewhere = (places.has_memories, places.has_scenes, places.library, tail.sealed_before)
    asked = [m.content for m in tail.messages if m.role in ASKING_ROLES]
    question = question_of(asked) if any(somewhere) or is_lost else ""
    if not question or turn.assistant is None:
        return RecallRequest(pinned_scene=pinned)
    scenes = _scenes(turn) if places.has_scenes or is_lost else ()
    is_searched = places.has_memories or scenes or tail.sealed_before
    default = places.embedding_model
    if default is None and is_searched:
        default = registry.default_embedding_model()
    return RecallRequest(
        question=question,
        before_position=tail.sealed_before,
        owner=places.owner if places.has_memories else None,
        library=places.library if not was_searched(tail) else None,
        scenes=scenes,
        pinned_scene=pinned,
        embedding_model=default if is_searched else None,
    )


def _is_pin_lost(turn: Turn, pinned: ScenePrompt | None) -> bool:
    """Return whether the chat's scene was deleted: then another one is chosen."""
    return turn.chat is not None and turn.chat.pinned_scene_id is not None and pinned is None


def _pinned_scene(turn: Turn) -> ScenePrompt | None:
    """Return the scene a person chose for this chat, if it is one of the answering assistant's."""
    if turn.chat is None or turn.chat.pinned_scene_id is None:
        return None
    mine = ScenePrompt.objects.filter(assistant=turn.assistant)
    with for_whole_organization():  # as long as the turn runs, also if it was closed meanwhile
        return mine.filter(pk=turn.chat.pinned_scene_id).first()


def _read_places(
    turn: Turn, owner: Owner, *, uses_memory: bool, uses_scenes: bool
) -> tuple[bool, bool, Sequence[SealedBlock], EmbeddingModel | None]:
    """Return whether there are memories and scenes, the newest blocks, and the model that compares
    the question with them: None if there are none of these."""
    model = registry.select_default_embedding_model()
    tail_tokens = settings.AMBER_CONTEXT_TAIL_TOKENS
    values = {
        **owner.fields,
        "uses_memory": uses_memory,
        "assistant": turn.assistant_id if uses_scenes else None,
        "chat": path_of_blocks(turn),
        "tail_tokens": tail_tokens,
    }
    sql = _PLACES_SQL.format(
        mine=owner.condition, blocks=newest_blocks_sql(blocks_in(tail_tokens)), model=model.sql
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        has_memories, has_scenes, blocks, *columns = cursor.fetchone()
    newest = [SealedBlock(*block) for block in reversed(blocks)]
    return has_memories, has_scenes, newest, model.rows([columns])[0] if columns[0] else None


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
