"""Serialise memories, to one form wherever they are shown."""

from typing import TypedDict

from amber.lib.wire_fields import Id, Time, write_id, write_time
from memory.models import Memory


class MemoryWire(TypedDict):
    """A memory. `superseded_by` is the id of the memory that took its place."""

    id: Id
    content: str
    assistant_id: Id | None
    evidence: list[Id]
    confidence: float
    valid_from: Time
    valid_until: Time | None
    superseded_by: Id | None
    created_at: Time
    updated_at: Time


def memory_wire(memory: Memory) -> MemoryWire:
    return {
        "id": str(memory.pk),
        "content": memory.content,
        "assistant_id": write_id(memory.assistant_id),
        "evidence": [str(message_id) for message_id in memory.evidence],
        "confidence": memory.confidence,
        "valid_from": write_time(memory.valid_from),
        "valid_until": write_time(memory.valid_until),
        "superseded_by": write_id(memory.superseded_by_id),
        "created_at": write_time(memory.created_at),
        "updated_at": write_time(memory.updated_at),
    }
