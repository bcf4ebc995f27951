"""Write mails into the outbox, in the transaction of what they tell of; workers send them.

There is one mail for each cause and address, however often it is asked for. Where no mail is sent
(AMBER_SMTP_URL is empty) none is written. Nothing here speaks to a mail server, so that nobody waits
for one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.mail.texts import NOTICES, Details
from accounts.models import MailStatus, Membership, OutgoingMail, Role, User
from amber.lib.ids import new_id
from amber.lib.secrets import cell_of, decrypt, encrypt_column
from amber.lib.workers.queue import enqueue

logger = structlog.get_logger(__name__)

GATHERED: Final = timedelta(minutes=15)
"""What fails together, as the documents of an upload, is told in one mail."""
MAX_GATHERED: Final = 20
"""How many of them are named."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """An address, and whose it is, as far as that is known. `language` is blank for the
    installation's."""

    address: str
    user: User | None = None
    language: str = ""

    @classmethod
    def of(cls, user: User) -> "Recipient":
        return cls(user.email, user, user.language)


def sends_mail() -> bool:
    return bool(settings.AMBER_SENDS_MAIL)


def enqueue_mails() -> None:
    """Wake a worker for mails. A lost message is harmless: a periodic job looks for them, too."""
    enqueue("ingest", "accounts.deliver_mails")


def post_mail(
    kind: str, to: Recipient, *, cause: str, details: Details, organization_id: UUID | None = None
) -> bool:
    """Write a mail, unless there is one for this cause and address. One INSERT.

    `cause` names what happened, once for all time. False: no mail is sent from here, or the recipient
    wants none of this kind.
    """
    if not _is_wanted(kind, to):
        return False
    mail = _new_mail(kind, to, cause=cause, due_at=timezone.now(), organization_id=organization_id)
    seal_details(mail, details)
    OutgoingMail.objects.bulk_create([mail], ignore_conflicts=True)
    transaction.on_commit(enqueue_mails)
    return True


def gather_mail(
    kind: str,
    to: Recipient,
    *,
    cause: str,
    details: Details,
    item: Mapping[str, str],
    organization_id: UUID,
) -> None:
    """Add an item to the mail that tells of all that happened to `cause` within GATHERED; it is sent
    after that. Three queries. Part of the caller's transaction, whose last lock it takes."""
    if not _is_wanted(kind, to):
        return
    begin, end = _stretch_around(timezone.now())
    cause = f"{cause}:{begin:%Y%m%d%H%M}"
    mail = _new_mail(kind, to, cause=cause, due_at=end, organization_id=organization_id)
    seal_details(mail, {**details, "count": 0, "items": []})
    OutgoingMail.objects.bulk_create([mail], ignore_conflicts=True)
    rows = OutgoingMail.objects.select_for_update(no_key=True).filter(status=MailStatus.QUEUED)
    found = rows.filter(cause=cause, address=to.address).first()
    if found is None:
        logger.warning("mail_gathered_too_late", kind=kind)  # a clock was set back
        return
    known = open_details(found)
    items = [*known["items"], dict(item)][:MAX_GATHERED]
    seal_details(found, {**known, "count": known["count"] + 1, "items": items})
    found.save(update_fields=["details_sealed", "updated_at"])


def owners_of(organization_id: UUID) -> list[Recipient]:
    """Return an organization's owners; nobody where no mail is sent. One query."""
    if not sends_mail():
        return []
    owners = Membership.objects.filter(organization_id=organization_id, role=Role.OWNER)
    return [Recipient.of(each.user) for each in owners.select_related("user")]


def member_of(organization_id: UUID, user_id: UUID | None) -> Recipient | None:
    """Return a person while they are a member; None for nobody, and where no mail is sent. A query."""
    if user_id is None or not sends_mail():
        return None
    members = Membership.objects.filter(organization_id=organization_id, user_id=user_id)
    member = members.select_related("user").first()
    return None if member is None else Recipient.of(member.user)


def post_to_all(kind: str, to: Iterable[Recipient], **about: Any) -> None:
    for recipient in to:
        post_mail(kind, recipient, **about)


# -- Details --------------------------------------------------------------------------------------


def seal_details(mail: OutgoingMail, details: Details) -> None:
    """Set the row's encrypted details, without saving."""
    encrypt_column(mail, "details", orjson.dumps(details).decode())


def open_details(mail: OutgoingMail) -> dict[str, Any]:
    """Return what the words are made of. Raises DecryptError."""
    opened = decrypt(mail.details_sealed, **cell_of(mail, "details"))
    details: dict[str, Any] = orjson.loads(opened)
    return details


def _is_wanted(kind: str, to: Recipient) -> bool:
    if not sends_mail():
        return False
    user = to.user
    return user is None or kind not in NOTICES or (user.is_active and user.mail_notices)


def _new_mail(
    kind: str, to: Recipient, *, cause: str, due_at: datetime, organization_id: UUID | None
) -> OutgoingMail:
    return OutgoingMail(
        id=new_id(),
        organization_id=organization_id,
        user=to.user,
        address=to.address,
        kind=kind,
        cause=cause,
        language=to.language,
        due_at=due_at,
    )


def _stretch_around(now: datetime) -> tuple[datetime, datetime]:
    """Return the stretch of GATHERED in which this time lies."""
    seconds = GATHERED.total_seconds()
    begin = datetime.fromtimestamp(now.timestamp() // seconds * seconds, tz=now.tzinfo)
    return begin, begin + GATHERED
