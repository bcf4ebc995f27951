"""Change chats, messages and turns: each function is one transaction, over authorised objects.

Locks are taken in one order everywhere: the chat, then its turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.access import find_visible, lock_visible
from accounts.tenancy.allowance import refuse_beyond
from accounts.tenancy.idempotency import settle
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.round_trips import in_one_trip
from amber.lib.errors import Invalid, Missing
from amber.lib.ids import new_id
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace
from assistants.models import Assistant
from chats.context.call_options import NO_OPTIONS, CallOptions
from chats.events.changes import tell_of_chat
from chats.events.stream import announce_cancel
from chats.messages import transcript
from chats.messages.block_paths import delete_blocks_with
from chats.messages.evidence import withdraw_messages
from chats.messages.questions import name_by, question_at
from chats.messages.roles import POSTED_ROLES
from chats.messages.wire import PostedWire, chat_wire, turn_wire
from chats.models import Chat, ChatMessage, Feedback, Turn
from chats.turns.admission import admit, release_budgets
from chats.turns.endings import TurnEnding, end_outside, lock_turn
from chats.turns.start import begin_turn, in_progress, lock_idle_chat, lock_live_turn
from engine.events import TurnStatus
from engine.messages import ASKING_ROLES, MessageRole
from libraries.models import File


@dataclass(frozen=True, slots=True)
class PostResult:
    """What a POST created: the message, and the turn it started, if any."""

    message: ChatMessage
    turn: Turn | None

    def wire(self) -> PostedWire:
        """Return the JSON of a POST's answer.

        One query, which a caller that streams the turn can save.
        """
        return {
            "message": transcript.messages_to_wire([self.message])[0],
            "turn": turn_wire(self.turn) if self.turn else None,
        }


@transaction.atomic(durable=True)
def create_chat(
    principal: Principal,
    *,
    at_most: int | None = None,
    question: Mapping[str, Any] | None = None,
    claim: IdempotencyRecord | None = None,
    **fields: Any,
) -> Chat:
    """Create a chat; with a `question`, the fields of `_post`, also ask it, or create nothing.

    Raises Conflict if the principal has `at_most` chats already, and what `post_message` raises.
    """
    if at_most is not None:
        said = f"You have reached the limit of {at_most} chats. Delete one first."
        refuse_beyond(Chat, principal, at_most, said=said)
    chat = transcript.new_chat(principal, **fields)
    chat.save(force_insert=True)
    posted = _post(chat, principal, None, None, **question) if question else None
    chat.live_turn_id = posted.turn.pk if posted and posted.turn else None
    tell_of_chat(chat)
    settle(claim, status=201, answer=chat_wire(chat))
    return chat


@transaction.atomic(durable=True)
def update_chat(chat: Chat, **fields: Any) -> Chat:
    """Write these fields of the chat, and no others. To pin or archive it is no activity."""
    for name, value in fields.items():
        setattr(chat, name, value)
    touched = [] if fields.keys() <= {"pinned", "archived"} else ["updated_at"]
    chat.save(update_fields=[*fields, *touched])
    tell_of_chat(chat)
    return chat


@transaction.atomic(durable=True)
def delete_chat(chat: Chat) -> None:
    """Delete a chat. A running turn notices that its row is gone, and stops. Memories stay."""
    transcript.lock_chat(chat.pk)
    tell_of_chat(chat, "chat.deleted")
    withdraw_messages(chat, ChatMessage.objects.filter(chat=chat))
    release_budgets(Turn.objects.live().filter(chat=chat))
    Turn.objects.filter(chat=chat).delete()
    Chat.objects.filter(pk=chat.pk).update(active_leaf=None)
    for rows in (Feedback.objects.filter(chat=chat), ChatMessage.objects.filter(chat=chat)):
        rows._raw_delete(rows.db)
    chat.delete()


@trace(names.STORE_QUESTION)
@transaction.atomic(durable=True)
def post_message(
    chat_id: UUID,
    principal: Principal,
    *,
    role: str,
    content: str = "",
    assistant: Assistant | None = None,
    file: File | None = None,
    files: Sequence[File] = (),
    parent: ChatMessage | None = None,
    claim: IdempotencyRecord | None = None,
) -> PostResult:
    """Append a message to a chat that the principal sees; a question also starts its turn.

    Without `parent` it goes to the end of the active branch, after the `files` that it is about. Raises Missing, and as
    all functions here that start turns Conflict (turn_in_progress), Invalid (no_assistant) and RateLimited
    (budget_exceeded).
    """
    policy = POSTED_ROLES.get(role)
    if policy is None:
        raise Invalid(
            code="role_not_allowed",
            fields={"role": ["Clients cannot post messages with this role."]},
        )
    chat = lock_visible(Chat, principal, chat_id)  # looked up and locked in one statement
    live = lock_live_turn(chat)
    if live is not None and not policy.while_live:
        raise in_progress(live)
    if parent is None:
        parent = _end_of_branch(chat, live)
    posted = _post(
        chat,
        principal,
        live,
        parent,
        role=role,
        content=content,
        assistant=assistant,
        file=file,
        files=files,
    )
    if posted.turn is None:
        tell_of_chat(chat)
    return _settle_post(posted, claim)


@transaction.atomic(durable=True)
def edit_message(
    message: ChatMessage,
    principal: Principal,
    *,
    content: str,
    claim: IdempotencyRecord | None = None,
) -> PostResult:
    """Write the edited message beside the old one; an edited question is asked again.

    Raises Invalid (role_not_allowed, or no content where the role needs some), Conflict
    (turn_in_progress).
    """
    policy = POSTED_ROLES.get(message.role)
    if policy is None:
        raise Invalid(code="role_not_allowed")
    if policy.needs_content and not content.strip() and not _is_about_file(message):
        raise Invalid(fields={"content": ["Messages with this role must have text."]})
    chat = lock_idle_chat(message.chat_id)
    edited = transcript.append(
        chat,
        message.parent,
        role=message.role,
        content=content,
        file=message.file,
        assistant=message.assistant,
        turn_id=new_id() if policy.starts_turn else None,
    )
    turn = None
    if policy.starts_turn:
        asked = _assistant_of(message, chat, principal)
        turn = _start_turn(chat, principal, edited, asked, turn_id=edited.turn_id)
    transcript.move_leaf(chat, edited)
    if turn is None:
        tell_of_chat(chat)
    return _settle_post(PostResult(edited, turn), claim)


@transaction.atomic(durable=True)
def regenerate(
    message: ChatMessage,
    principal: Principal,
    *,
    assistant: Assistant | None = None,
    claim: IdempotencyRecord | None = None,
) -> PostResult:
    """Ask the question of this message (or of this answer) again, as a new branch.

    Raises Invalid (no_human_message, no_assistant), Conflict (turn_in_progress).
    """
    chat = lock_idle_chat(message.chat_id)
    question = question_at(message)
    answered_by = assistant or _assistant_of(question, chat, principal)
    turn = _start_turn(chat, principal, question, answered_by)
    transcript.move_leaf(chat, question)
    return _settle_post(PostResult(question, turn), claim)


@transaction.atomic(durable=True)
def delete_message(message: ChatMessage) -> None:
    """Take one message out; what followed it now follows its parent.

    Raises Conflict (turn_in_progress).
    """
    chat = lock_idle_chat(message.chat_id)
    delete_blocks_with(message)
    withdraw_messages(chat, ChatMessage.objects.filter(pk=message.pk))
    if message.opening_id == message.pk:
        same = ChatMessage.objects.filter(chat=chat, opening=message)
        same.update(opening=message.parent_id)
    ChatMessage.objects.filter(parent=message).update(parent=message.parent)
    Turn.objects.filter(tip=message).update(tip=message.parent)
    if chat.active_leaf_id == message.pk:
        transcript.move_leaf(chat, message.parent)
    ChatMessage.objects.filter(pk=message.pk).delete()
    tell_of_chat(chat)


@transaction.atomic(durable=True)
def switch_branch(chat: Chat, leaf: ChatMessage) -> Chat:
    """Show another branch; a running turn goes on where it is."""
    chat = transcript.lock_chat(chat.pk)
    transcript.move_leaf(chat, leaf)
    tell_of_chat(chat)
    return chat


@transaction.atomic(durable=True)
def start_stateless_turn(
    principal: Principal,
    *,
    messages: Sequence[Mapping[str, Any]],
    assistant: Assistant | None = None,
    options: CallOptions = NO_OPTIONS,
    files: Sequence[File] = (),
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Start a turn without a chat: `messages` are in the form of `Turn.input`, one of them asks.

    Without an assistant the model of `options` answers. `files` are those the messages name, not
    yet saved. Raises RateLimited (budget_exceeded).
    """
    for file in files:
        file.save(force_insert=True)
    turn = admit(
        Turn(
            organization_id=principal.organization_id,
            user=principal.user,
            api_key=principal.key,
            guest_id=principal.guest_id,
            assistant=assistant,
            input={"messages": list(messages)},
            options=options.as_json(),
        )
    )
    settle(claim, status=201, answer=turn_wire(turn))
    return turn


@transaction.atomic(durable=True)
def cancel_turn(turn: Turn) -> Turn:
    """End a turn that nobody runs at once, or ask its worker to end it.

    Idempotent. Raises Missing.
    """
    locked, chat = lock_turn(turn.pk, turn.chat_id, Turn.objects.all())
    if locked is None:
        raise Missing
    if not locked.is_live:
        return locked
    if locked.status != TurnStatus.RUNNING:
        end_outside(locked, chat, TurnEnding(TurnStatus.CANCELLED))
        return locked
    if locked.cancel_requested_at is None:
        locked.cancel_requested_at = timezone.now()
        locked.save(update_fields=["cancel_requested_at", "updated_at"])
    transaction.on_commit(partial(announce_cancel, locked.pk))
    return locked


# -- Private: inside the caller's transaction ------------------------------------------------------


def _post(
    chat: Chat,
    principal: Principal,
    live: Turn | None,
    parent: ChatMessage | None,
    *,
    role: str,
    content: str,
    assistant: Assistant | None = None,
    file: File | None = None,
    files: Sequence[File] = (),
) -> PostResult:
    """Write the message under `parent`, after the files it is about; start the turn of a question."""
    is_asked = POSTED_ROLES[role].starts_turn
    asked = (assistant or _assistant_of_chat(chat, principal)) if is_asked else None
    turn = None
    with in_one_trip():
        for each in files:
            parent = transcript.append(chat, parent, role=MessageRole.FILE, file=each)
            transcript.move_leaf(chat, parent)
        message = transcript.append(
            chat,
            parent,
            role=role,
            content=content,
            file=file,
            assistant=_author(role, assistant),
            turn_id=new_id() if is_asked else None,
        )
        if is_asked:
            turn = _start_turn(chat, principal, message, asked, turn_id=message.turn_id)
            chat.name = chat.name or name_by(message, files)
        elif live is not None and live.tip_id == message.parent_id:
            Turn.objects.filter(pk=live.pk).update(tip=message)
        transcript.move_leaf(chat, message)
    return PostResult(message, turn)


def _is_about_file(message: ChatMessage) -> bool:
    """Return whether this is a question that a person's file stands before: it needs no words."""
    before = message.parent
    is_file = before is not None and before.role == MessageRole.FILE and not before.tool_call
    return is_file and message.role in ASKING_ROLES


def _settle_post(posted: PostResult, claim: IdempotencyRecord | None) -> PostResult:
    if claim is not None:  # without one its JSON, which costs a query, may never be asked for
        settle(claim, status=201, answer=posted.wire())
    return posted


def _end_of_branch(chat: Chat, live: Turn | None) -> ChatMessage | None:
    """Return the message that the next one follows: a running turn's last one, if a turn runs."""
    leaf_id = live.tip_id if live is not None else chat.active_leaf_id
    found = _message_with(message_id=leaf_id) if leaf_id else []
    return found[0] if found else None


@cache_sql
def _message_with(*, message_id: UUID) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.filter(pk=message_id)


def _author(role: str, assistant: Assistant | None) -> Assistant | None:
    """Return the assistant to store with a message: the one asked, or the author of an answer."""
    return assistant if role == MessageRole.ASSISTANT or role in ASKING_ROLES else None


def _start_turn(
    chat: Chat,
    principal: Principal,
    question: ChatMessage,
    assistant: Assistant | None,
    *,
    turn_id: UUID | None = None,
) -> Turn:
    if assistant is None:
        raise Invalid(code="no_assistant", fields={"assistant_id": ["Name an assistant."]})
    return begin_turn(chat, principal, question, assistant, turn_id=turn_id)


def _assistant_of(message: ChatMessage, chat: Chat, principal: Principal) -> Assistant | None:
    """Return the assistant that was asked, else the first to answer, else the chat's, if usable."""
    answered_by = message.turn.assistant_id if message.turn_id and message.turn else None
    asked = message.assistant_id or answered_by
    return _usable(asked, principal) or _assistant_of_chat(chat, principal)


def _assistant_of_chat(chat: Chat, principal: Principal) -> Assistant | None:
    return _usable(chat.assistant_id, principal)


def _usable(assistant_id: UUID | None, principal: Principal) -> Assistant | None:
    return find_visible(Assistant, principal, assistant_id) if assistant_id else None
