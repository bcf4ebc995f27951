"""Start the turn that answers a question of a chat, in which no other turn may live.

Everything is part of the caller's transaction, which holds the chat's lock. Turns without a chat are not started here.
"""

from uuid import UUID

from django.db.models import QuerySet

from accounts.principal import Principal
from amber.lib.database.cached_sql import cache_sql
from amber.lib.errors import Conflict
from amber.lib.ids import new_id
from assistants.models import Assistant
from chats.context.call_options import CallOptions
from chats.messages import transcript
from chats.models import Chat, ChatMessage, Turn
from chats.turns.admission import admit


def lock_live_turn(chat: Chat) -> Turn | None:
    """Return the chat's live turn, locked until the transaction ends; None if there is none."""
    live = _live_turns(chat_id=chat.pk)
    return live[0] if live else None


@cache_sql
def _live_turns(*, chat_id: UUID) -> QuerySet[Turn]:
    """Lock the chat's live turn: one at most."""
    return Turn.objects.live().filter(chat=chat_id).select_for_update(no_key=True)


def in_progress(live: Turn) -> Conflict:
    return Conflict(code="turn_in_progress", turn_id=str(live.pk))


def lock_idle_chat(chat_id: UUID) -> Chat:
    """Return the chat, locked. Raises Missing, and Conflict (turn_in_progress) if a turn lives in it."""
    chat = transcript.lock_chat(chat_id)
    live = lock_live_turn(chat)
    if live is not None:
        raise in_progress(live)
    return chat


def begin_turn(
    chat: Chat,
    principal: Principal,
    question: ChatMessage,
    assistant: Assistant | None,
    *,
    tip: ChatMessage | None = None,
    options: CallOptions | None = None,
    turn_id: UUID | None = None,
) -> Turn:
    """Start the turn that answers the question. What it writes follows `tip`, by default the question.

    A question that is new was written with its `turn_id` already, which saves a statement. Raises RateLimited.
    """
    turn = admit(
        Turn(
            id=turn_id or new_id(),
            organization_id=chat.organization_id,
            chat=chat,
            user_id=chat.user_id,
            guest_id=chat.guest_id,
            api_key=principal.key,
            assistant=assistant,
            question=question,
            tip=tip or question,
            options=options.as_json() if options else {},
        )
    )
    if question.turn_id is None:
        question.turn = turn
        question.save(update_fields=["turn", "updated_at"])
    return turn
