"""Define Celery's task for webhooks. Its message names nothing: the rows are the queue."""

from importlib import import_module

from celery import shared_task


@shared_task(name="public_api.deliver_webhooks")
def deliver_webhooks(*_: str) -> None:
    """Send what is due. The module with the HTTP client is imported only when it is needed."""
    import_module("public_api.webhooks.delivery").deliver_due()
