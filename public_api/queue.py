"""The ring for webhooks: it names nothing, the queue is in the database."""

from amber.lib.workers.queue import enqueue


def enqueue_deliveries() -> None:
    """Losing a ring is normal: a chore looks for what is due."""
    enqueue("ingest", "public_api.deliver_webhooks")
