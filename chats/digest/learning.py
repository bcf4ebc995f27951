"""Learn facts about a person from ended turns, by `memory.extraction.fact_finding`.

Only what the person typed and what the assistant answered is shown to the model, never prompts,
recalled text, passages or results of tools; and only what still stands on the chat's active path,
so that what was edited away is not learnt.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction

from amber.lib.ids import new_id
from assistants.turn_config import turn_config_of
from chats.messages import transcript
from chats.messages.roles import LEARNT_ROLES
from chats.models import Chat, ChatMessage, Turn
from engine.messages import ASKING_ROLES, MessageRole
from engine.provider.model import Model, Usage
from engine.text.small_talk import is_small_talk
from engine.text.tokens import estimate_tokens
from memory.extraction.extractor import (
    MAX_ANSWER_CHARS,
    MAX_OUTPUT_TOKENS,
    MAX_SAID_CHARS,
    ConversationText,
    ExtractionCall,
)
from memory.extraction.fact_finding import KNOWN_TOKENS, Extractor, LearntFact, find, keep
from memory.owner import Owner
from memory.recall import embedding
from providers import registry
from providers.budgets import reservations
from providers.budgets.rules import Spending
from providers.budgets.scopes import BudgetSubject
from providers.models import LanguageModel
from providers.usage import ledger
from providers.usage.ledger import spending_of

_SHOWN: Final = (*LEARNT_ROLES, MessageRole.ASSISTANT)


def learn(chat: Chat, turns: Sequence[Turn]) -> None:
    """Extract facts from these turns of one chat, as far as their assistants use memory.

    Raises ProviderError, Unavailable, and RateLimited (budget_exceeded). Facts found before that
    are kept, and finding them again does no harm.
    """
    learning = [turn for turn in turns if uses_memory(turn)]
    if not learning:
        return
    # The turns are of one person, but may be of several assistants: the last one's model is asked.
    turn = learning[-1]
    owner = Owner.asking(turn.organization_id, turn.user_id, turn.guest_id)
    row = _model_for(turn)
    extractor = _extractor(turn, owner, row)
    for messages in _portions(_said_in(chat, learning)):
        if all(is_small_talk(message.text) for message in messages if message.by_user):
            continue
        with _reserve_budget(turn, row, messages):
            found = find(owner, messages, extractor=extractor, assistant_id=turn.assistant_id)
        if found and not _store_facts(chat.pk, owner, found):
            return


def uses_memory(turn: Turn) -> bool:
    """Whether this turn may read and write memories of the person who asked."""
    if turn.assistant is None:
        return False
    is_public_api = turn.api_key_id is not None or turn.guest_id is not None
    return turn_config_of(turn.assistant, is_public_api=is_public_api).uses_memory


@transaction.atomic
def _store_facts(chat_id: UUID, owner: Owner, found: Sequence[LearntFact]) -> bool:
    """Store facts under the chat's lock. Return False if the chat was deleted meanwhile."""
    if not Chat.objects.before_expiry().select_for_update(no_key=True).filter(pk=chat_id).exists():
        return False
    for learnt in found:
        keep(owner, learnt)
    return True


def _said_in(chat: Chat, turns: Sequence[Turn]) -> list[ConversationText]:
    """Return the exchange of each turn, and the messages "to be answered later" just before it."""
    rows = ChatMessage.objects.filter(chat=chat, role__in=_SHOWN)
    mine = rows.filter(turn__in=turns) | rows.filter(pk__in=[turn.question_id for turn in turns])
    question_ids = {turn.question_id for turn in turns if turn.question_id}
    questions = ChatMessage.objects.filter(pk__in=question_ids).defer("search")
    later = {pk for question in questions for pk in _later_before(question)}
    mine |= rows.filter(pk__in=later)
    on_path = transcript.path_ids(chat.pk, chat.active_leaf_id)
    fields = ("pk", "role", "content", "created_at")
    spoken = mine.distinct().order_by("position").values_list(*fields)
    return [
        ConversationText(pk, role in LEARNT_ROLES, content, at)
        for pk, role, content, at in spoken
        if pk in on_path
    ]


def _later_before(question: ChatMessage) -> Iterator[UUID]:
    """Yield what the person said since the previous question without asking for an answer."""
    before = transcript.path(
        question.chat_id, question.parent_id, max_messages=_LATER_MESSAGES, brief=True
    )
    for message in reversed(before):
        if message.role in ASKING_ROLES or message.role == MessageRole.ASSISTANT:
            return
        if message.role in LEARNT_ROLES:
            yield message.pk


_LATER_MESSAGES: Final = 50


def _portions(messages: Sequence[ConversationText]) -> Iterator[list[ConversationText]]:
    """Split the messages into portions that fit into one call of the model, in order."""
    portion: list[ConversationText] = []
    chars = 0
    for message in messages:
        if portion and chars + _size(message) > MAX_SAID_CHARS:
            yield portion
            portion, chars = [], 0
        portion.append(message)
        chars += _size(message)
    if portion:
        yield portion


def _size(message: ConversationText) -> int:
    """Return how many of its characters are shown to the model."""
    return min(len(message.text), MAX_SAID_CHARS if message.by_user else MAX_ANSWER_CHARS)


def _model_for(turn: Turn) -> LanguageModel:
    """Return the model of AMBER_MEMORY_MODEL, else the assistant's own."""
    assert turn.assistant is not None
    alias = settings.AMBER_MEMORY_MODEL or turn.assistant.model
    return registry.resolve(alias, wants_vision=False).row


@contextmanager
def _reserve_budget(
    turn: Turn, row: LanguageModel, messages: Sequence[ConversationText]
) -> Iterator[None]:
    """Reserve what the call inside may use. Raises RateLimited (budget_exceeded)."""
    if row.provider.is_offline:
        yield
        return

    def estimate_spending() -> Spending:
        shown = (message.text[: _size(message)] for message in messages)
        prompt_tokens = KNOWN_TOKENS + sum(map(estimate_tokens, shown))
        return spending_of(row, Usage(prompt_tokens, MAX_OUTPUT_TOKENS))

    holder_id = new_id()
    with transaction.atomic():
        is_held = reservations.reserve(
            BudgetSubject.of(turn), estimate_spending, holder_id=holder_id
        )
    try:
        yield
    finally:
        if is_held:
            reservations.release([holder_id])


def _extractor(turn: Turn, owner: Owner, row: LanguageModel) -> Extractor:
    """Return the extractor. With the offline model it only finds explicit statements."""
    embedding_model = registry.default_embedding_model()
    model: Model | None = None if row.provider.is_offline else registry.engine_model(row)
    return Extractor(
        model=model,
        embed=partial(embedding.embed, owner=owner, model=embedding_model),
        embedding_model_id=embedding_model.pk,
        on_call=partial(_record, row, turn),
    )


def _record(row: LanguageModel, turn: Turn, call: ExtractionCall) -> None:
    ledger.record(
        row,
        call.usage,
        **BudgetSubject.of(turn).columns(),
        turn_id=turn.pk,
        latency_ms=call.latency_ms,
        outcome=call.outcome,
    )
