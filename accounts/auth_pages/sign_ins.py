"""Tell the audit log of sign-ins and of failed ones, at allauth's addresses and the admin's alike.

Django's own signals come from both. Nobody learns from the time that an answer takes who has an
account: what is not told of anybody is written, too, and taken back.
"""

from collections.abc import Mapping
from typing import Any

import structlog
from allauth.account.utils import filter_users_by_email
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.audit.actors import client_address
from accounts.audit.recording import record, record_for_person
from accounts.audit_actions import AuditAction
from accounts.models import Organization, User
from accounts.principal import Actor, ActorKind
from amber.lib.ids import new_id

logger = structlog.get_logger(__name__)


@receiver(user_logged_in, dispatch_uid="audit")
def note_sign_in(request: HttpRequest, user: User, **_: Any) -> None:
    """Record a sign-in in each organization of the person's: the session may act in all of them."""
    by = Actor(ActorKind.USER, user.pk, address=client_address(request))
    record_for_person(by, AuditAction.SIGN_IN_SUCCEEDED, user)


@receiver(user_login_failed, dispatch_uid="audit")
def note_failed_sign_in(
    credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: Any
) -> None:
    """Record a failed sign-in in each organization of whose address it was.

    An address without an account belongs to no organization: it is logged, without the address.
    """
    by = Actor(ActorKind.NOBODY, address=client_address(request) if request else "")
    email = str(credentials.get("email") or credentials.get("username") or "")
    users: list[User] = filter_users_by_email(email) if email else []
    for user in users:
        record_for_person(by, AuditAction.SIGN_IN_FAILED, user)
    if not users:
        logger.info("unknown_sign_in_failed", address=by.address)
        _do_and_undo_a_record(by)


def _do_and_undo_a_record(by: Actor) -> None:
    with transaction.atomic():
        nowhere = Organization.objects.create(slug=new_id().hex)
        record(by, AuditAction.SIGN_IN_FAILED, nowhere, organization_id=nowhere.pk)
        transaction.set_rollback(True)
