"""Hide what a person wants erased, in one transaction; it is deleted in the background.

`operations.privacy.person_erasure` deletes it in batches. What the person shared with the
organization or with a group stays, without an owner. A closed organization is hidden here, too;
`operations.privacy.organization_erasure` deletes it, and of it nothing stays.
"""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.closing import close_account
from accounts.models import ApiKey, IdempotencyRecord, Membership, User
from accounts.principal import Actor, Principal
from assistants.models import Assistant
from chats.models import Chat, Turn
from libraries.ingestion.endings import stop_documents
from libraries.models import Document, File, Library
from libraries.queue import enqueue_erasure
from memory.models import Memory
from operations.models import Erasure
from operations.privacy.person_erasure import PersonRows
from operations.queue import enqueue_periodic_job
from tools.models import Tool


@transaction.atomic(durable=True)
def request_erasure(
    user: User, *, organization_id: UUID, by: Actor, account: bool = False
) -> Erasure:
    """Return the erasure that is under way, or begin one. Raises Conflict (see `close_account`)."""
    # Two requests at once must not begin two erasures.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    open_ones = Erasure.objects.filter(user=user, ended_at__isnull=True)
    if not account:
        under_way: Erasure | None = open_ones.filter(organization_id=organization_id).first()
        if under_way is not None:
            return under_way
    erasure = Erasure(organization_id=organization_id, user=user, account=account)
    person_rows = PersonRows(erasure)
    if person_rows.personal:
        erasure.organization = person_rows.personal[0]
    # In the order in which workers lock them: chats, turns, assistants; documents, libraries.
    _hide(person_rows)
    erasure.doomed = _disown_rows(person_rows)
    places = _places_of(user) if account else [organization_id]
    if account:
        close_account(user)
    erasure.save(force_insert=True)
    transaction.on_commit(partial(enqueue_periodic_job, "erase_people"))
    transaction.on_commit(enqueue_erasure)
    for place in places:
        erased = AuditAction.PERSON_ERASED
        record(by, erased, user, organization_id=place, detail={"account": account})
    return erasure


def hide_organization(organization_id: UUID) -> None:
    """Hide an organization that is being closed: guests are shut out, what runs is stopped.

    Part of the caller's transaction.
    """
    now = timezone.now()
    # In the order in which workers lock them, as above.
    Chat.objects.before_expiry().filter(organization=organization_id).update(expired_at=now)
    turns = Turn.objects.filter(organization=organization_id)
    turns.live().update(cancel_requested_at=now)
    turns.filter(digest_at__isnull=False).update(digest_at=None)
    File.objects.before_expiry().filter(organization=organization_id).update(expired_at=now)
    Assistant.objects.filter(organization=organization_id).update(public=False)
    stop_documents(Document.objects.filter(organization=organization_id))
    Library.objects.filter(organization=organization_id).update(deleted_at=now)
    transaction.on_commit(partial(enqueue_periodic_job, "erase_organizations"))
    transaction.on_commit(enqueue_erasure)


def latest_erasure(principal: Principal) -> Erasure | None:
    """Return the person's newest erasure in this organization, finished or not."""
    rows = Erasure.objects.visible_to(principal).order_by("-created_at")
    found: Erasure | None = rows.first()
    return found


def _places_of(user: User) -> list[UUID]:
    """Return the organizations of a person, in the order in which their audit logs are locked."""
    mine = Membership.objects.filter(user=user).order_by("organization_id")
    return list(mine.values_list("organization_id", flat=True))


def _hide(person_rows: PersonRows) -> None:
    now = timezone.now()
    person_rows.of(Chat).before_expiry().update(expired_at=now)
    person_rows.of(Turn).live().update(cancel_requested_at=now)
    person_rows.of(Turn).filter(digest_at__isnull=False).update(digest_at=None)
    stateless = person_rows.of(Turn).filter(chat__isnull=True)
    said = Q(input__isnull=False) | Q(output__isnull=False) | Q(manifest__isnull=False)
    stateless.filter(said).update(
        input=None, output=None, manifest=None, partial_text="", partial_reasoning=""
    )
    person_rows.of(File).before_expiry().update(expired_at=now)
    person_rows.of(Memory).delete()
    keys = person_rows.of(ApiKey)
    labels = [f"key:{pk}" for pk in keys.values_list("pk", flat=True)]
    keys.filter(revoked_at__isnull=True).update(revoked_at=now)
    user_id = person_rows.erasure.user_id
    answers = IdempotencyRecord.objects.filter(principal__in=[f"user:{user_id}", *labels])
    if not person_rows.erasure.account:
        answers = answers.filter(organization_id=person_rows.erasure.organization_id)
    answers.delete()


def _disown_rows(person_rows: PersonRows) -> dict[str, list[str]]:
    """Take the person's name off assistants, tools and libraries.

    Return the ids of those that were theirs alone, by kind: nobody sees them from now on, and they
    will be deleted.
    """
    doomed: dict[str, list[str]] = {}
    for model in (Assistant, Tool, Library):
        mine = person_rows.of(model)
        unshared = Q(shared=False, grants__isnull=True)
        alone = mine.filter(unshared | Q(organization__in=person_rows.personal))
        ids = list(alone.values_list("pk", flat=True).distinct())
        doomed[str(model._meta.model_name)] = [str(pk) for pk in ids]
        hidden: dict[str, Any] = {"user": None, "shared": False}
        if model is Assistant:
            hidden["public"] = False
        if model is Library:
            hidden |= {"default": False, "deleted_at": timezone.now()}
            stop_documents(Document.objects.filter(library__in=ids))
            mine.update(default=False)
        model._default_manager.filter(pk__in=ids).update(**hidden)
        mine.update(user=None)
    return doomed
