"""Convert chats, messages and turns to their wire form: the same in REST and in events."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Final, NotRequired, TypedDict
from uuid import UUID

from amber.lib.wire_fields import Id, Time, write_id, write_time
from assistants.models import Assistant
from chats.models import (
    ROLE_CHOICES,
    STATUS_CHOICES,
    Chat,
    ChatMessage,
    ChatOwner,
    Feedback,
    FeedbackReason,
    FeedbackValue,
    Turn,
)
from engine.events import TurnStatus
from libraries.retrieval.passages import PassageWire
from libraries.wire import FileWire, file_wire


class NamedWire(TypedDict):
    id: Id
    name: str


class ChatWire(TypedDict):
    id: Id
    name: str
    assistant_id: Id | None
    can_be_asked: Annotated[
        bool,
        "false: the chat has no assistant that you may use. Give it one, or name one "
        "with each question; a question without one is answered with 400 `no_assistant`.",
    ]
    prompt: str | None
    owner: Annotated[str, ChatOwner]
    guest_id: str | None
    expired_at: Time | None
    pinned_scene_id: Id | None
    active_leaf_id: Id | None
    live_turn_id: Annotated[Id | None, "The turn that is queued, running or waiting: follow it."]
    pinned: bool
    archived: Annotated[bool, "true: lists leave it out unless asked for it."]
    created_at: Time
    updated_at: Time


class ToolCallWire(TypedDict):
    id: str
    name: str
    arguments: Annotated[str, "The raw string the model wrote."]
    reply_id: str | None


class FeedbackWire(TypedDict):
    value: Annotated[str, FeedbackValue]
    reason: Annotated[str, FeedbackReason] | None
    comment: str
    created_at: Time
    updated_at: Time


class GivenFeedbackWire(FeedbackWire):
    id: Id
    message_id: Id
    chat_id: Id
    assistant: Annotated[NamedWire | None, "The assistant that answered."]
    user_id: Annotated[Id | None, "Who gave it; null: a guest."]


class FeedbackTotalWire(TypedDict):
    day: Annotated[str, date, "In UTC."]
    assistant: NamedWire | None
    up: int
    down: int


class MessageWire(TypedDict):
    """A stored message, as in events."""

    id: Id
    chat_id: Id
    parent_id: Id | None
    sibling_ids: Annotated[
        list[Id],
        "The messages with the same parent, oldest first, this one among them; of more than 200 those around it.",
    ]
    role: Annotated[str, ROLE_CHOICES]
    content: str
    reasoning: Annotated[
        str,
        "What the model thought before it said this; empty where that is not known, or where the "
        "assistant hides it.",
    ]
    assistant_id: Id | None
    assistant: NamedWire | None
    file_id: Id | None
    file: FileWire | None
    tool_call: ToolCallWire | None
    hidden: bool
    citations: list[PassageWire]
    model: Annotated[
        str | None, "The model that wrote an imported answer. Of others the turn's manifest tells."
    ]
    feedback: Annotated[
        FeedbackWire | None, "What you think of this answer. Events and new answers have null."
    ]
    turn_id: Id | None
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    created_at: Time
    updated_at: Time


class TurnErrorWire(TypedDict):
    code: Annotated[str, "A code of docs/errors.md, such as `provider_timeout`."]
    message: Annotated[str, "An explanation for people."]
    retryable: Annotated[bool, "true: the same question may succeed later."]


class TurnUsageWire(TypedDict, total=False):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: Annotated[int, "Part of prompt_tokens."]
    reasoning_tokens: Annotated[int, "Part of completion_tokens."]


class WaitingCallWire(TypedDict):
    call_id: str
    name: str
    arguments: Annotated[str, "The raw string the model wrote."]
    approved: Annotated[bool | None, "null: not decided yet."]


class QueueWire(TypedDict):
    position: Annotated[
        int, "How many of the organization's turns wait up to this one; 1,000 at most."
    ]
    reason: Annotated[
        str,
        "`workers_busy`: every worker is busy. `organization_limit`: the organization has as "
        "many turns running as it may.",
    ]


class TurnWire(TypedDict):
    id: Id
    chat_id: Id | None
    status: Annotated[str, STATUS_CHOICES]
    queue: Annotated[
        QueueWire | None, "Why the turn waits; only where a queued turn is asked for by its id."
    ]
    error: TurnErrorWire | None
    attempts: int
    usage: TurnUsageWire
    finish_reason: Annotated[
        str | None, "The provider's reason, such as stop, length or content_filter."
    ]
    waiting_calls: list[WaitingCallWire]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None


class PostedWire(TypedDict):
    message: MessageWire
    turn: TurnWire | None


class ExportedMessageWire(MessageWire):
    """A stored message, as in events, but for `sibling_ids`: it names the message alone, since all
    branches are here, and `parent_id` tells them."""

    provider_fields: NotRequired[
        Annotated[dict[str, Any], "Data for the model alone, which may refuse the chat without it."]
    ]


class ExportWire(TypedDict):
    chat: ChatWire
    messages: list[ExportedMessageWire]


class NotTakenWire(TypedDict):
    kind: Annotated[str, "What it is, such as attachment, thoughts or citations."]
    count: int
    reason: Annotated[str, "Why it was not taken, for people."]


class ImportedChatWire(TypedDict):
    chat: ChatWire
    format: Annotated[str, "The format that the chat was written in."]
    is_new: Annotated[bool, "false: it was taken in before, and no second one was made."]
    messages: Annotated[int, "The number of messages it has now."]
    not_taken: list[NotTakenWire]
    notice: Annotated[str | None, "What you must do before the chat can go on, for people."]


class RefusedChatWire(TypedDict):
    name: str
    reason: Annotated[str, "Why there is no chat of it, for people."]


class ImportReportWire(TypedDict):
    id: NotRequired[Annotated[Id, "The chat's id, where it is one."]]
    assistant_id: NotRequired[Annotated[Id | None, "The chat's assistant, where it is one."]]
    chats: list[ImportedChatWire]
    refused: Annotated[list[RefusedChatWire], "What could not be made a chat of."]
    is_complete: Annotated[
        bool,
        "false: more chats are left than one request takes. Send the same once more: what was "
        "taken is not taken twice.",
    ]


def named_wire(assistant: Assistant | None) -> NamedWire | None:
    return {"id": str(assistant.pk), "name": assistant.name} if assistant else None


def chat_wire(chat: Chat) -> ChatWire:
    return {
        "id": str(chat.pk),
        "name": chat.name,
        "assistant_id": write_id(chat.assistant_id),
        "can_be_asked": chat.can_be_asked,
        "prompt": chat.prompt,
        "owner": chat.owner,
        "guest_id": chat.guest_id,
        "expired_at": write_time(chat.expired_at),
        "pinned_scene_id": write_id(chat.pinned_scene_id),
        "active_leaf_id": write_id(chat.active_leaf_id),
        "live_turn_id": write_id(chat.live_turn_id),
        "pinned": chat.pinned,
        "archived": chat.archived,
        "created_at": write_time(chat.created_at),
        "updated_at": write_time(chat.updated_at),
    }


def feedback_wire(feedback: Feedback) -> FeedbackWire:
    return {
        "value": feedback.value,
        "reason": feedback.reason or None,
        "comment": feedback.comment,
        "created_at": write_time(feedback.created_at),
        "updated_at": write_time(feedback.updated_at),
    }


def given_feedback_wire(feedback: Feedback) -> GivenFeedbackWire:
    """Return what admins are shown of feedback: nothing of what was said in the chat."""
    return {
        **feedback_wire(feedback),
        "id": str(feedback.pk),
        "message_id": str(feedback.message_id),
        "chat_id": str(feedback.chat_id),
        "assistant": named_wire(feedback.assistant),
        "user_id": write_id(feedback.user_id),
    }


def message_wire(
    message: ChatMessage,
    *,
    sibling_ids: Sequence[UUID] = (),
    feedback: Feedback | None = None,
) -> MessageWire:
    """Return a message's wire form. `sibling_ids` are in order of age (none: itself alone); of very many
    those around it are named."""
    siblings = _nearest(message.pk, sibling_ids) if sibling_ids else [message.pk]
    return {
        "id": str(message.pk),
        "chat_id": write_id(message.chat_id),
        "parent_id": write_id(message.parent_id),
        "sibling_ids": [str(sibling) for sibling in siblings],
        "role": message.role,
        "content": message.content,
        "reasoning": "" if hides_reasoning(message) else message.reasoning,
        "assistant_id": write_id(message.assistant_id),
        "assistant": named_wire(message.assistant if message.assistant_id else None),
        "file_id": write_id(message.file_id),
        "file": file_wire(message.file) if message.file and not message.file.is_expired else None,
        "tool_call": message.tool_call,
        "hidden": message.hidden,
        "citations": message.citations,
        "model": message.model or None,
        "feedback": feedback_wire(feedback) if feedback else None,
        "turn_id": write_id(message.turn_id),
        "prompt_tokens": message.prompt_tokens,
        "completion_tokens": message.completion_tokens,
        "total_tokens": message.total_tokens,
        "created_at": write_time(message.created_at),
        "updated_at": write_time(message.updated_at),
    }


MAX_SIBLINGS: Final = 200
"""The most that one message names: a hundred messages of a page, each naming 19,000 others, had 72 MB."""


def _nearest(message_id: UUID, sibling_ids: Sequence[UUID]) -> Sequence[UUID]:
    """Return those around the message, if there are too many to name all."""
    if len(sibling_ids) <= MAX_SIBLINGS or message_id not in sibling_ids:
        return sibling_ids[-MAX_SIBLINGS:]
    start = max(sibling_ids.index(message_id) - MAX_SIBLINGS // 2, 0)
    start = min(start, len(sibling_ids) - MAX_SIBLINGS)
    return sibling_ids[start : start + MAX_SIBLINGS]


def hides_reasoning(message: ChatMessage) -> bool:
    """Return whether the assistant that wrote this shows nobody what it thought."""
    assistant: Assistant | None = message.assistant if message.assistant_id else None
    return assistant is not None and assistant.hide_reasoning


def turn_wire(turn: Turn, queue: QueueWire | None = None) -> TurnWire:
    return {
        "id": str(turn.pk),
        "chat_id": write_id(turn.chat_id),
        "status": str(turn.status),
        "queue": queue,
        "error": turn.error,
        "attempts": turn.attempt,
        "usage": turn.usage,
        "finish_reason": turn.finish_reason or None,
        "waiting_calls": turn.waiting_calls if turn.status == TurnStatus.WAITING else [],
        "created_at": write_time(turn.created_at),
        "started_at": write_time(turn.started_at),
        "ended_at": write_time(turn.ended_at),
    }
