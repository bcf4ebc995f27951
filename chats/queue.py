"""Rings for turns and sealing. Losing one is normal: the sweep rings again for what stays queued."""

from uuid import UUID

from amber.lib.workers.queue import enqueue


def enqueue_turn(turn_id: UUID) -> None:
    enqueue("chat", "chats.run_turn", str(turn_id))


def enqueue_sealing(chat_id: UUID) -> None:
    """A lost ring is made good after the chat's next turn."""
    enqueue("ingest", "chats.seal_chat", str(chat_id))
