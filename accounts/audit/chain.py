"""Write an event of the audit log in its canonical form, and hash it with the one before.

The form is part of what is kept: events that were written by it must hash to the same for ever. So
nothing is left out of it and nothing renamed; docs/audit.md describes it for whoever verifies an
export.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

from accounts.audit_actions import AuditAction
from accounts.models import AuditEvent
from accounts.principal import ActorKind
from amber.lib.wire_fields import Id, Time, write_id


class CanonicalEvent(TypedDict):
    """All that `hash` covers: every column but itself."""

    id: Id
    organization_id: Id
    number: Annotated[int, "Counts the organization's events from 1, without a gap."]
    created_at: Time
    action: Annotated[str, AuditAction]
    actor_kind: Annotated[str, ActorKind]
    actor_user_id: Annotated[Id | None, "The person; of a key the one it acts for."]
    actor_key_id: Id | None
    target_kind: Annotated[str, "The kind of row it was done to, such as `assistant` or `user`."]
    target_id: Id
    target_label: Annotated[str, "The name the row had then; empty for people."]
    address: Annotated[str, "The client's IP address; empty if none is known."]
    detail: dict[str, Any]
    previous_hash: Annotated[str, "The `hash` of the event before; empty for the first."]


def canonical_form(event: AuditEvent) -> CanonicalEvent:
    return {
        "id": write_id(event.pk),
        "organization_id": write_id(event.organization_id),
        "number": event.number,
        "created_at": write_moment(event.created_at),
        "action": str(event.action),
        "actor_kind": str(event.actor_kind),
        "actor_user_id": write_id(event.actor_user_id),
        "actor_key_id": write_id(event.actor_key_id),
        "target_kind": event.target_kind,
        "target_id": write_id(event.target_id),
        "target_label": event.target_label,
        "address": event.address,
        "detail": event.detail,
        "previous_hash": event.previous_hash,
    }


def hash_form(form: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a canonical form: JSON in UTF-8, names sorted, without spaces."""
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_moment(moment: datetime) -> str:
    """Return the time in UTC, always with six digits of microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
