"""Celery's doorbell for webhooks: a ring names nothing, the queue is in the database."""

from importlib import import_module
from typing import Final

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError

logger = structlog.get_logger(__name__)

_PUBLISH_ONCE: Final = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}


@shared_task(name="public_api.deliver_webhooks")
def deliver_webhooks() -> None:
    """Its module is read by the workers that send, not by the web process that rings."""
    import_module("public_api.webhook_delivery").deliver_due()


def ring_deliveries() -> None:
    """Losing a ring is normal: a chore looks for what is due."""
    try:
        deliver_webhooks.apply_async(retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", reason=type(exc).__name__)
