"""What webhooks want of the rooms below: to hear of turns, and to be looked after now and then."""

from chats.turns import listeners
from operations.maintenance.periodic_jobs import add_chore
from public_api.webhooks.outbox import note_turn

listeners.tell(note_turn)
add_chore("deliver_webhooks", every_seconds=10, run="public_api.webhooks.delivery.deliver_due")
add_chore(
    "forget_webhook_deliveries",
    every_seconds=3_600,
    run="public_api.webhooks.delivery.forget_deliveries",
)
