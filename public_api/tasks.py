"""Celery's task for webhooks: a ring (`public_api.queue`) names nothing, the queue is in the database."""

from importlib import import_module

from celery import shared_task


@shared_task(name="public_api.deliver_webhooks")
def deliver_webhooks() -> None:
    """The HTTP client comes with its module: workers read it when there is something to send."""
    import_module("public_api.webhooks.delivery").deliver_due()
