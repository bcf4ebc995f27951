"""What webhooks want of the rooms below: to hear of turns, and to be looked after now and then."""

from importlib import import_module

from chats import turn_news
from chats.chores import add_chore
from public_api.webhook_outbox import note_turn


def _deliver() -> None:
    import_module("public_api.webhook_delivery").deliver_due()


def _forget() -> None:
    import_module("public_api.webhook_delivery").forget_deliveries()


turn_news.tell(note_turn)
add_chore("deliver_webhooks", every_seconds=10, run=_deliver)
add_chore("forget_webhook_deliveries", every_seconds=3_600, run=_forget)
