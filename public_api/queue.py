"""Enqueue deliveries of webhooks. The message names none: the rows are the queue."""

from amber.lib.workers.queue import enqueue


def enqueue_deliveries() -> None:
    """Wake a worker for what is due. A lost message is harmless: a periodic job looks for it,
    too."""
    enqueue("ingest", "public_api.deliver_webhooks")
