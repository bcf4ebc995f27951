"""Change API keys: make, edit, rotate, revoke; and the keys that applications stand behind.

Every function is one transaction and takes rows that the caller was allowed to reach. A key's text leaves
once, as the second value returned.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.audit.recording import Detail, record
from accounts.audit_actions import AuditAction
from accounts.models import ApiKey, Organization, User
from accounts.principal import Actor
from accounts.sign_in.applications import SCOPE as OAUTH_SCOPE
from accounts.sign_in.applications import end_tokens, key_of_application
from amber.lib.database.rows import save_changes
from amber.lib.errors import Conflict, Invalid
from amber.lib.secrets import is_well_formed, new_api_key, prefix_of, sha256_hex

MAX_KEY_NAME_CHARS = 200


def create_api_key(
    user: User,
    *,
    organization: Organization,
    name: str,
    by: Actor,
    assistant_id: UUID | None = None,
    scopes: Sequence[str] = (),
    origins: Sequence[str] = (),
    expires_at: datetime | None = None,
    secret: str = "",
    oauth_client: str = "",
) -> tuple[ApiKey, str]:
    """Return a key that acts for `user`, and its text. `secret` is the text to use, new if empty.

    Raises Invalid (`secret` is not of the form of a key), Conflict (it is in use).
    """
    secret = secret or new_api_key()
    if not is_well_formed(secret):
        raise Invalid("This is not an API key: its form or its checksum is wrong.")
    key = ApiKey(
        organization=organization,
        user=user,
        name=name,
        prefix=prefix_of(secret),
        sha256=sha256_hex(secret),
        assistant_id=assistant_id,
        scopes=list(scopes),
        origins=list(origins),
        expires_at=expires_at,
        oauth_client=oauth_client,
    )
    try:
        with transaction.atomic(durable=True):
            key.save(force_insert=True)
            detail = {"scopes": list(scopes)} if scopes else None
            _record_key(by, AuditAction.KEY_MADE, key, detail)
    except IntegrityError:
        raise Conflict("This key exists already.")
    return key, secret


@transaction.atomic(durable=True)
def edit_api_key(key: ApiKey, *, changes: Mapping[str, Any], by: Actor) -> ApiKey:
    key = save_changes(_lock_live_key(key), changes)
    if changes:
        _record_key(by, AuditAction.KEY_CHANGED, key, {"fields": sorted(changes)})
    return key


@transaction.atomic(durable=True)
def rotate_api_key(key: ApiKey, *, overlap: timedelta, by: Actor) -> tuple[ApiKey, str]:
    """Return a successor with the same rights, and its text. The old key works `overlap` longer.

    If the old key has an expiry date, the new one lives as long. Raises Conflict (the key does
    not work any more, or stands for an application).
    """
    key = _lock_live_key(key)
    if key.oauth_client:
        raise Conflict("This key stands for an application, which renews its tokens itself.")
    now = timezone.now()
    secret = new_api_key()
    successor = ApiKey.objects.create(
        organization_id=key.organization_id,
        user_id=key.user_id,
        name=key.name,
        prefix=prefix_of(secret),
        sha256=sha256_hex(secret),
        assistant_id=key.assistant_id,
        scopes=key.scopes,
        origins=key.origins,
        expires_at=_lifetime_from(now, key),
        rotated_from=key,
        lineage_id=key.lineage_id or key.pk,
    )
    end = now + overlap
    save_changes(key, {"expires_at": min(key.expires_at or end, end)})
    _record_key(by, AuditAction.KEY_ROTATED, key, {"successor_id": str(successor.pk)})
    return successor, secret


@transaction.atomic(durable=True)
def revoke_api_key(key: ApiKey, *, by: Actor) -> ApiKey:
    """Revoke the key at once and for good; the row stays, for the ledger."""
    key = ApiKey.objects.select_for_update().get(pk=key.pk)
    if key.revoked_at is None:
        save_changes(key, {"revoked_at": timezone.now()})
        if key.oauth_client:
            end_tokens(key.user_id, key.oauth_client)
        _record_key(by, AuditAction.KEY_REVOKED, key)
    return key


def let_application_in(
    user: User, *, organization: Organization, client_id: str, name: str, by: Actor
) -> ApiKey:
    """Return the key that the application stands behind from now on: the one it has in this
    organization, or a new one. It leaves any other organization of the person's.
    """
    for key in key_of_application(user, client_id):
        if key.organization_id == organization.pk:
            return key
        revoke_api_key(key, by=by)
    key, _ = create_api_key(
        user,
        organization=organization,
        name=name[:MAX_KEY_NAME_CHARS] or "Application",
        by=by,
        scopes=[OAUTH_SCOPE],
        oauth_client=client_id,
    )
    return key


def _record_key(by: Actor, action: AuditAction, key: ApiKey, detail: Detail | None = None) -> None:
    organization_id = key.organization_id
    record(by, action, key, organization_id=organization_id, label=key.name, detail=detail)


def _lifetime_from(now: datetime, key: ApiKey) -> datetime | None:
    """Return when a key ends that lives from now on as long as this one; None for no end."""
    if key.expires_at is None:
        return None
    try:
        return now + (key.expires_at - key.created_at)
    except OverflowError:  # beyond the calendar: people write its last day for "never"
        return key.expires_at


def _lock_live_key(key: ApiKey) -> ApiKey:
    """Return the row as it is now, locked. Raises Conflict unless the key still works."""
    live: ApiKey | None = ApiKey.objects.live().select_for_update().filter(pk=key.pk).first()
    if live is None:
        raise Conflict("This key was revoked or has expired.")
    return live
