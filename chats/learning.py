"""What is learnt about a person from turns that ended: their words go to `memory.extraction`.

Only what the person typed and what the assistant answered is shown to the model, never prompts,
recalled text, passages or results of tools.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from libraries.embedding_store import embed_texts

from assistants.recipe import recipe_of
from chats.models import Chat, ChatMessage, MessageRole, Turn
from engine.model import Model, Usage
from engine.small_talk import is_small_talk
from memory.extraction import Extractor, Said, extract
from memory.owner import Owner
from providers import ledger, registry
from providers.models import LanguageModel

_BY_USER = frozenset({MessageRole.HUMAN, MessageRole.HUMAN_LATER})
_SHOWN = _BY_USER | {MessageRole.ASSISTANT}


def learn(chat: Chat, turns: Sequence[Turn]) -> None:
    """Extract facts from these turns of one chat, if their assistant uses memory.

    Raises ProviderError and Unavailable; then nothing was kept.
    """
    turn = turns[-1]
    if turn.assistant is None or not _uses_memory(turn, chat):
        return
    messages = _said_in(chat, turns)
    if all(is_small_talk(message.text) for message in messages if message.by_user):
        return
    extract(
        Owner(turn.organization_id, turn.user_id if not turn.guest_id else None, turn.guest_id),
        messages,
        extractor=_extractor(turn),
    )


def _uses_memory(turn: Turn, chat: Chat) -> bool:
    assert turn.assistant is not None
    is_public_api = turn.api_key_id is not None or turn.guest_id is not None
    return recipe_of(turn.assistant, is_public_api=is_public_api).uses_memory


def _said_in(chat: Chat, turns: Sequence[Turn]) -> list[Said]:
    """The exchange of each turn, and what was said to be answered later just before it."""
    rows = ChatMessage.objects.filter(chat=chat, role__in=_SHOWN)
    of_turns = rows.filter(turn__in=turns) | rows.filter(pk__in=[t.question_id for t in turns])
    spoken = of_turns.distinct().order_by("position").values_list("pk", "role", "content")
    return [Said(pk, role in _BY_USER, content) for pk, role, content in spoken]


def _extractor(turn: Turn) -> Extractor:
    """With the assistant's own model; the offline one only finds explicit statements."""
    assert turn.assistant is not None
    row = registry.resolve(turn.assistant.model, wants_vision=False).row
    embedding_model = registry.default_embedding_model()
    model: Model | None = None if row.provider.is_offline else registry.engine_model(row)
    return Extractor(
        model=model,
        embed=partial(embed_texts, model=embedding_model, organization_id=turn.organization_id),
        embedding_model_id=embedding_model.pk,
        on_usage=partial(_record, row, turn),
    )


def _record(row: LanguageModel, turn: Turn, usage: Usage) -> None:
    ledger.record(
        row,
        usage,
        organization_id=turn.organization_id,
        user_id=turn.user_id,
        api_key_id=turn.api_key_id,
        guest_id=turn.guest_id,
        assistant_id=turn.assistant_id,
        turn_id=turn.pk,
    )


def evidence_of(ids: Sequence[UUID]) -> Sequence[ChatMessage]:
    """The messages a memory rests on, as far as they still exist, oldest first."""
    return list(ChatMessage.objects.filter(pk__in=ids).order_by("created_at"))
