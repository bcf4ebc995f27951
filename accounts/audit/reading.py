"""Show events of the audit log: filtered, in batches, with the names that people have today.

Names are looked up while reading and are no part of what is hashed: an erased person has none.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Final
from uuid import UUID

from django.db.models import QuerySet

from accounts.audit.chain import CanonicalEvent, canonical_form
from accounts.models import AuditEvent, User
from accounts.principal import ActorKind

ERASED: Final = "Erased person"
BATCH: Final = 500
_PERSON: Final = User._meta.verbose_name_raw
_UNNAMED: Final[Mapping[str, str]] = {ActorKind.OPERATOR: "Operator", ActorKind.NOBODY: "Nobody"}


class AuditEventWire(CanonicalEvent):
    """An event. `hash` covers everything but itself, `actor_name` and `target_name`."""

    actor_name: Annotated[str, "The person's email address today, or `Erased person`."]
    target_name: Annotated[str, "The target's label; for people their email address today."]
    hash: str


def in_order(rows: QuerySet[AuditEvent]) -> Iterator[list[AuditEvent]]:
    """Yield the events of one organization by their numbers, a batch at a time."""
    after = 0
    while batch := list(rows.filter(number__gt=after).order_by("number")[:BATCH]):
        yield batch
        after = batch[-1].number


def events_wire(events: Sequence[AuditEvent]) -> list[AuditEventWire]:
    """Return the wire forms of events. One query, for the names of people."""
    people = {event.actor_user_id for event in events if event.actor_user_id is not None}
    people |= {event.target_id for event in events if event.target_kind == _PERSON}
    emails = _emails_of(people)
    return [_event_wire(event, emails) for event in events]


def lines_of(rows: QuerySet[AuditEvent]) -> Iterator[AuditEventWire]:
    """Yield the wire forms of one organization's events by their numbers."""
    for batch in in_order(rows):
        yield from events_wire(batch)


def _event_wire(event: AuditEvent, emails: Mapping[UUID, str]) -> AuditEventWire:
    actor = emails.get(event.actor_user_id, ERASED) if event.actor_user_id else ""
    is_person = event.target_kind == _PERSON
    return {
        **canonical_form(event),
        "actor_name": _UNNAMED.get(event.actor_kind, actor),
        "target_name": emails.get(event.target_id, ERASED) if is_person else event.target_label,
        "hash": event.hash,
    }


def _emails_of(ids: Collection[UUID]) -> dict[UUID, str]:
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "email"))
