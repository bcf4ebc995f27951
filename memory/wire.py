"""Serialise memories, to one form wherever they are shown."""

from typing import Any

from memory.models import Memory


def memory_wire(memory: Memory) -> dict[str, Any]:
    """Return the memory's wire form. `superseded_by` is the memory that took its place."""
    return {
        "id": str(memory.pk),
        "content": memory.content,
        "assistant_id": _text(memory.assistant_id),
        "evidence": [str(message_id) for message_id in memory.evidence],
        "confidence": memory.confidence,
        "valid_from": _time(memory.valid_from),
        "valid_until": _time(memory.valid_until),
        "superseded_by": _text(memory.superseded_by_id),
        "created_at": _time(memory.created_at),
        "updated_at": _time(memory.updated_at),
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
