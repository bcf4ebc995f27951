"""Send a mail at once, to see whether the mail server takes mails: `manage.py send_test_mail ADDRESS`.

Says in a sentence what is wrong if it does not.
"""

import smtplib
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import get_connection
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email

from accounts.mail.delivery import reason_of
from accounts.mail.messages import write_test_message
from accounts.mail.outbox import sends_mail

_NO_SERVER = (
    "AMBER_SMTP_URL is empty: this installation sends no mail. Set it to your mail server, as"
    " smtp://user:password@mail.example.com:587"
)


class Command(BaseCommand):
    help = "Send a mail at once, to see whether the mail server takes mails."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="who gets it")

    def handle(self, *args: Any, address: str, **options: Any) -> None:
        _check(address)
        message = write_test_message(address)
        try:
            with get_connection() as server:
                message.connection = server
                message.send()
        except (smtplib.SMTPException, OSError) as error:
            raise CommandError(f"The mail was not sent. {reason_of(error)}") from error
        self.stdout.write(f"The mail server took the mail. Look into the mailbox of {address}.")


def _check(address: str) -> None:
    """Raise CommandError if no mail can be sent, or not to this address."""
    if not sends_mail():
        raise CommandError(_NO_SERVER)
    for each, whose in (
        (address, "the address"),
        (parseaddr(settings.DEFAULT_FROM_EMAIL)[1], "AMBER_EMAIL_FROM"),
    ):
        try:
            validate_email(each)
        except ValidationError as error:
            raise CommandError(f"{each!r} is no email address ({whose}).") from error
