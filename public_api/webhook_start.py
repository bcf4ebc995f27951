"""What webhooks want of the rooms below: to hear of turns, and to be looked after now and then."""

from chats import turn_news
from chats.chores import add_chore
from public_api.webhook_outbox import note_turn

turn_news.tell(note_turn)
add_chore("deliver_webhooks", every_seconds=10, run="public_api.webhook_delivery.deliver_due")
add_chore(
    "forget_webhook_deliveries",
    every_seconds=3_600,
    run="public_api.webhook_delivery.forget_deliveries",
)
