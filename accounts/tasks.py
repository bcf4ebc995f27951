"""Define Celery's task for mails. Its message names none: the rows are the queue."""

from importlib import import_module

from celery import shared_task


@shared_task(name="accounts.deliver_mails")
def deliver_mails(*_: str) -> None:
    """Send what is due. The module with the mail client is imported only when it is needed."""
    import_module("accounts.mail.delivery").deliver_due()
