"""Convert chats, messages and turns to their wire form: the same in REST and in events."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from chats.models import Chat, ChatMessage, Turn, TurnStatus
from libraries.wire import file_wire


def chat_wire(chat: Chat) -> dict[str, Any]:
    return {
        "id": str(chat.pk),
        "name": chat.name,
        "assistant_id": _text(chat.assistant_id),
        "can_be_asked": chat.can_be_asked,
        "prompt": chat.prompt,
        "owner": chat.owner,
        "guest_id": chat.guest_id,
        "expired_at": _time(chat.expired_at),
        "pinned_scene_id": _text(chat.pinned_scene_id),
        "active_leaf_id": _text(chat.active_leaf_id),
        "created_at": _time(chat.created_at),
        "updated_at": _time(chat.updated_at),
    }


def message_wire(
    message: ChatMessage, *, sibling_ids: Iterable[UUID] | None = None
) -> dict[str, Any]:
    """Return a message's wire form. `sibling_ids` are in order of age (default: itself alone)."""
    assistant = message.assistant if message.assistant_id else None
    siblings = [message.pk] if sibling_ids is None else sibling_ids
    return {
        "id": str(message.pk),
        "chat_id": _text(message.chat_id),
        "parent_id": _text(message.parent_id),
        "sibling_ids": [str(sibling) for sibling in siblings],
        "role": message.role,
        "content": message.content,
        "assistant_id": _text(message.assistant_id),
        "assistant": assistant and {"id": str(assistant.pk), "name": assistant.name},
        "file_id": _text(message.file_id),
        "file": file_wire(message.file) if message.file and not message.file.is_expired else None,
        "tool_call": message.tool_call,
        "hidden": message.hidden,
        "citations": message.citations,
        "turn_id": _text(message.turn_id),
        "prompt_tokens": message.prompt_tokens,
        "completion_tokens": message.completion_tokens,
        "total_tokens": message.total_tokens,
        "created_at": _time(message.created_at),
        "updated_at": _time(message.updated_at),
    }


def turn_wire(turn: Turn) -> dict[str, Any]:
    return {
        "id": str(turn.pk),
        "chat_id": _text(turn.chat_id),
        "status": str(turn.status),
        "error": turn.error,
        "attempts": turn.attempt,
        "usage": turn.usage,
        "finish_reason": turn.finish_reason or None,
        "waiting_calls": turn.waiting_calls if turn.status == TurnStatus.WAITING else [],
        "created_at": _time(turn.created_at),
        "started_at": _time(turn.started_at),
        "ended_at": _time(turn.ended_at),
    }


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
