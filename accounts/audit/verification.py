"""Walk the chains of the audit log, and say where the first one that is broken breaks.

It reads only. What it cannot tell: a log whose every row and whose end were written anew by
somebody who may do all that in Postgres. An export that was kept elsewhere tells it
(docs/audit.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import OuterRef, Subquery

from accounts.audit.chain import canonical_form, hash_form
from accounts.audit.reading import in_order
from accounts.models import AuditChain, AuditEvent


@dataclass(frozen=True, slots=True)
class ChainReport:
    """How many events follow each other from the first one on, and what is wrong with the next;
    `fault` is empty if all are intact."""

    intact_count: int
    fault: str = ""


def organizations_with_events() -> Iterator[UUID]:
    """Yield the organizations that have a log, also those of which only a part of it is left."""
    yield from AuditChain.objects.order_by("pk").values_list("pk", flat=True)
    chained = AuditChain.objects.filter(pk=OuterRef("organization_id"))
    endless = AuditEvent.objects.alias(chain=Subquery(chained.values("pk"))).filter(chain=None)
    yield from endless.order_by().values_list("organization_id", flat=True).distinct()


def verify_chain(organization_id: UUID) -> ChainReport:
    """Compare every event with its hash and with the one before, then the end with its record."""
    rows = AuditEvent.objects.filter(organization_id=organization_id)
    number, previous = 0, ""
    for batch in in_order(rows):
        for event in batch:
            if fault := _fault_of(event, number, previous):
                return ChainReport(number, fault)
            number, previous = event.number, event.hash
    return ChainReport(number, _fault_of_end(organization_id, number, previous))


def _fault_of(event: AuditEvent, number: int, last_hash: str) -> str:
    """Return what is wrong with the event after that of this number and hash."""
    if event.number != number + 1:
        last = event.number - 1
        return f"{_list_numbers(number + 1, last)} missing: the next one is event {event.number}."
    if event.previous_hash != last_hash:
        where = f"event {number}" if number else "nothing before it"
        return (
            f"event {event.number} does not follow {where}: one of them was put here, replaced or "
            "moved."
        )
    if hash_form(canonical_form(event)) != event.hash:
        return f"event {event.number} was changed: its hash is another."
    return ""


def _fault_of_end(organization_id: UUID, number: int, last_hash: str) -> str:
    """Return what is wrong after the last event. Events that were appended meanwhile are not."""
    end = AuditChain.objects.filter(pk=organization_id).first()
    if end is None:
        return "the record of the log's end is missing." if number else ""
    if end.number < number:
        return f"the log's end is recorded as event {end.number}, but there are {number}."
    if end.number == number:
        is_same = end.hash == last_hash
        return "" if is_same else f"event {number} is not the one recorded as the log's end."
    # One query sees event and end together: whoever appends commits both at once.
    ends = AuditChain.objects.filter(
        pk=organization_id,
        number=Subquery(
            AuditEvent.objects.filter(organization_id=OuterRef("pk"))
            .order_by("-number")
            .values("number")[:1]
        ),
    )
    if ends.exists():
        return ""
    return f"{_list_numbers(number + 1, end.number)} missing: the end was cut off."


def _list_numbers(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first} to {last} are"
