"""Enqueue turns and sealing. A message may be lost: the sweep enqueues again what stays queued."""

from uuid import UUID

from amber.lib.workers.queue import enqueue


def enqueue_turn(turn_id: UUID) -> None:
    enqueue("chat", "chats.run_turn", str(turn_id))


def enqueue_sealing(chat_id: UUID) -> None:
    """Ask for old messages to be sealed. A lost message is made good after the chat's next turn."""
    enqueue("ingest", "chats.seal_chat", str(chat_id))
