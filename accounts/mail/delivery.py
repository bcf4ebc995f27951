"""Send the mails of the outbox, try again for a day, and never hand one over twice.

A mail is a row with a lease and a fence. Connecting, TLS and login come first: what fails there is
tried again. Then the row says that the server may have the mail (`handed_at`); after that only a
server's own refusal is tried again (RFC 5321, 4.2.1: 4xx for now, 5xx for good). A worker or a
connection that is lost in between leaves a mail that may have arrived: it ends as failed, and an
operator decides. Each failure is logged and counted, and the admin shows the mails.
"""

import smtplib
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.validators import validate_email
from django.db import transaction
from django.db.models.functions import Now

from accounts.mail.messages import write_message
from accounts.mail.outbox import open_details
from accounts.mail.texts import NOTICES
from accounts.models import Invitation, MailKind, MailStatus, Membership, OutgoingMail
from amber.lib.database.batches import delete_in_batches
from amber.lib.database.connections import release_connections
from amber.lib.database.tenant import across_tenants
from amber.lib.secrets import DecryptError
from amber.lib.workers.guard import count_fault
from amber.lib.workers.leases import Runs, sweep_expired
from amber.lib.workers.time_slice import TimeSlice
from amber.lib.workers.worker import this_worker

logger = structlog.get_logger(__name__)

PART: Final = "deliver_mails"
RETRY_SECONDS: Final = (30, 120, 600, 1_800, 7_200, 21_600, 54_000)
"""The pauses between attempts: just under 24 hours in all."""
LEASE_SECONDS: Final = 120
KEPT: Final = timedelta(days=30)
_AT_ONCE: Final = 20
_ERROR_CHARS: Final = 300

MAY_HAVE_ARRIVED: Final = "The connection was lost, or the worker stopped, while the mail was handed over. It may have arrived."
running_mails: Final = Runs(OutgoingMail, lease_seconds=LEASE_SECONDS)


class DeliveryError(Exception):
    """A mail was not sent. `is_final`: trying again would not help, or might send it twice."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


def deliver_due() -> None:
    """Send what is due, for a limited time: other work of the queue waits behind it."""
    with across_tenants():
        sweep_expired(PART, OutgoingMail, _give_back, lease_seconds=LEASE_SECONDS)
        time_slice = TimeSlice()
        while not time_slice.is_over() and (ids := _due_ids()):
            for pk in ids:
                _deliver(pk)
                if time_slice.is_over():
                    return


def forget_mails() -> None:
    """Delete mails that ended more than KEPT ago, in batches."""
    old = OutgoingMail.objects.filter(
        created_at__lt=Now() - KEPT,
        status__in=[MailStatus.SENT, MailStatus.FAILED, MailStatus.CANCELLED],
    )
    delete_in_batches(old, at_most=1_000)


@transaction.atomic
def send_again(mail: OutgoingMail) -> bool:
    """Queue a mail that failed, for an operator; False if it did not, or was sent meanwhile."""
    failed = OutgoingMail.objects.filter(pk=mail.pk, status=MailStatus.FAILED)
    return bool(
        failed.update(
            status=MailStatus.QUEUED,
            attempt=0,
            handed_at=None,
            due_at=Now(),
            ended_at=None,
            error="",
        )
    )


# -- One mail -------------------------------------------------------------------------------------


def _due_ids() -> list[UUID]:
    due = OutgoingMail.objects.filter(status=MailStatus.QUEUED, due_at__lte=Now())
    return list(due.order_by("due_at").values_list("pk", flat=True)[:_AT_ONCE])


def _deliver(pk: UUID) -> None:
    worker = this_worker().name
    mail = OutgoingMail.objects.claim(pk, worker=worker, lease_seconds=LEASE_SECONDS)
    if mail is None:
        return
    if why := _why_moot(mail):
        OutgoingMail.objects.end(mail, MailStatus.CANCELLED, error=why, details_sealed="")
        return
    with running_mails.listing([mail]):
        try:
            _send(mail)
        except DeliveryError as error:
            _note_failure(mail, error)
        else:
            OutgoingMail.objects.end(mail, MailStatus.SENT, error="", details_sealed="")


def _why_moot(mail: OutgoingMail) -> str:
    """Say why nobody should get the mail any more; empty if it is still true. Up to two queries."""
    if mail.organization is None:
        return ""
    if mail.organization.deleted_at is not None:
        return "The organization was deleted meanwhile."
    if mail.kind == MailKind.INVITATION:
        row = Invitation.objects.open().filter(pk=mail.cause.partition(":")[2])
        return "" if row.exists() else "The invitation was withdrawn, or is over."
    if mail.kind in NOTICES and mail.user_id is not None:
        members = Membership.objects.filter(
            organization_id=mail.organization.pk, user_id=mail.user_id
        )
        return "" if members.exists() else "They have left the organization meanwhile."
    return ""


def _send(mail: OutgoingMail) -> None:
    """Hand the mail over to the server. Raises DeliveryError."""
    message = _message_of(mail)
    release_connections()  # a slow server holds no connection of the database's
    server = get_connection()
    try:
        server.open()
        _hand_over(mail, message, server)
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(reason_of(error)) from error
    finally:
        _close(server)


def _message_of(mail: OutgoingMail) -> EmailMultiAlternatives:
    try:
        validate_email(mail.address)
        return write_message(
            mail.kind,
            open_details(mail),
            to=mail.address,
            language=mail.language,
            mail_id=str(mail.pk),
        )
    except DecryptError as error:
        raise DeliveryError("The mail cannot be decrypted any more.", is_final=True) from error
    except ValidationError as error:
        raise DeliveryError("This is not a valid email address.", is_final=True) from error
    except KeyError as error:
        raise DeliveryError("A newer release wrote the mail. It waits for one.") from error


def _hand_over(
    mail: OutgoingMail, message: EmailMultiAlternatives, server: BaseEmailBackend
) -> None:
    held = OutgoingMail.objects.held_by(mail)
    if not held.update(handed_at=Now(), updated_at=Now()):
        raise DeliveryError("Another worker has the mail.")
    message.connection = server
    try:
        message.send()
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        raise DeliveryError(reason_of(error), is_final=_is_refused_for_good(error)) from error
    except smtplib.SMTPNotSupportedError as error:
        raise DeliveryError(reason_of(error), is_final=True) from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(MAY_HAVE_ARRIVED, is_final=True) from error


def _close(server: BaseEmailBackend) -> None:
    """End the connection. What goes wrong with that is no matter of the mail's any more."""
    try:
        server.close()
    except (smtplib.SMTPException, OSError) as error:
        logger.info("mail_server_left_badly", reason=type(error).__name__)


# -- What went wrong ------------------------------------------------------------------------------


def reason_of(error: Exception) -> str:
    """Say in words what a mail server, or the way to it, said. Never a password or a text."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"The mail server refuses the user name or password: {_reply(error)}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
        return f"The mail server refuses the address: {code} {_decode(text)}"
    if isinstance(error, smtplib.SMTPSenderRefused):
        return f"The mail server refuses the sender (AMBER_EMAIL_FROM): {_reply(error)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"The mail server refuses the mail: {_reply(error)}"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"The mail server cannot do what is needed: {error}"
    if isinstance(error, TimeoutError):
        return "The mail server does not answer in time."
    return f"There is no connection to the mail server: {error}"


def _is_refused_for_good(error: smtplib.SMTPException) -> bool:
    """Whether the refusal is of this mail. One of the sender, or of our login, may be mended."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500


def _reply(error: smtplib.SMTPResponseException) -> str:
    return f"{error.smtp_code} {_decode(error.smtp_error)}"


def _decode(text: bytes | str) -> str:
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return " ".join(said.split())


def _note_failure(mail: OutgoingMail, error: DeliveryError) -> None:
    """Put the mail off, or end it as failed; each is logged, and what ends is counted."""
    reason, about = str(error)[:_ERROR_CHARS], {"mail_id": str(mail.pk), "kind": mail.kind}
    if error.is_final or mail.attempt > len(RETRY_SECONDS):
        OutgoingMail.objects.end(mail, MailStatus.FAILED, error=reason)
        logger.error("mail_failed", reason=reason, **about)
        count_fault(PART)
        return
    wait = timedelta(seconds=RETRY_SECONDS[mail.attempt - 1])
    OutgoingMail.objects.give_back(mail, error=reason, due_at=Now() + wait, handed_at=None)
    logger.warning("mail_put_off", reason=reason, attempt=mail.attempt, **about)


def _give_back(mail_id: UUID) -> None:
    """Queue a mail whose worker died, unless the server may have it."""
    mail = OutgoingMail.objects.lock_expired(mail_id)
    if mail is None:
        return
    if mail.handed_at is None:
        OutgoingMail.objects.give_back(mail)
    else:
        _note_failure(mail, DeliveryError(MAY_HAVE_ARRIVED, is_final=True))
