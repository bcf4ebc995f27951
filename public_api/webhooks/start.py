"""Register webhooks as a listener of turns, when Django starts."""

from chats.turns import listeners
from public_api.webhooks.outbox import note_turn

listeners.register(note_turn)
