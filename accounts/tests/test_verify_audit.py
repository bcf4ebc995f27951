"""`verify_audit` says whether a log is intact, and where and how it was broken otherwise."""

from collections.abc import Callable
from contextlib import contextmanager
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from accounts.audit import reading, verification
from accounts.audit.chain import canonical_form, hash_form
from accounts.models import AuditChain, AuditEvent
from accounts.tests.test_record_audit import events_of, note
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db

COUNT = 7


@contextmanager
def superuser() -> Any:
    """Without triggers, as only a superuser of Postgres can work."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")


@pytest.fixture
def log(alice: Persona, monkeypatch: pytest.MonkeyPatch) -> Persona:
    """Alice, whose organization has COUNT events, read in several batches."""
    monkeypatch.setattr(reading, "BATCH", 3)
    for number in range(COUNT):
        note(alice, detail={"n": number})
    return alice


def verify(*arguments: str) -> str:
    said = StringIO()
    try:
        call_command("verify_audit", *arguments, stdout=said)
    except CommandError as error:
        return f"{said.getvalue()}{error}"
    return said.getvalue()


def rows(log: Persona, number: int) -> Any:
    return AuditEvent.objects.filter(organization=log.organization, number=number)


def forge(event: AuditEvent) -> None:
    """Give a row the hash that it would have had."""
    AuditEvent.objects.filter(pk=event.pk).update(hash=hash_form(canonical_form(event)))


def change_words(log: Persona) -> None:
    rows(log, 4).update(detail={"n": 99})


def change_the_time(log: Persona) -> None:
    event = rows(log, 4).get()
    rows(log, 4).update(created_at=event.created_at.replace(year=2001))


def change_and_hash_anew(log: Persona) -> None:
    rows(log, 4).update(detail={"n": 99})
    forge(rows(log, 4).get())


def remove_one(log: Persona) -> None:
    rows(log, 4).delete()


def remove_some(log: Persona) -> None:
    AuditEvent.objects.filter(organization=log.organization, number__in=[3, 4, 5]).delete()


def shift_down_after_removing(log: Persona) -> None:
    rows(log, 4).delete()
    for number in range(5, COUNT + 1):
        rows(log, number).update(number=number - 1)
        forge(rows(log, number - 1).get())


def insert_one(log: Persona) -> None:
    for number in range(COUNT, 3, -1):
        rows(log, number).update(number=number + 1)
    event = rows(log, 3).get()
    event.pk, event.number, event.previous_hash = uuid4(), 4, event.hash
    event.hash = hash_form(canonical_form(event))
    event.save(force_insert=True)


def swap_two(log: Persona) -> None:
    rows(log, 4).update(number=99)
    rows(log, 5).update(number=4)
    rows(log, 99).update(number=5)


def cut_the_tail(log: Persona) -> None:
    AuditEvent.objects.filter(organization=log.organization, number__gt=5).delete()


def remove_all(log: Persona) -> None:
    AuditEvent.objects.filter(organization=log.organization).delete()


def cut_the_tail_and_its_record(log: Persona) -> None:
    """As somebody would who forgot the hash."""
    cut_the_tail(log)
    AuditChain.objects.filter(pk=log.organization.pk).update(number=5)


def append_behind(log: Persona) -> None:
    event = rows(log, COUNT).get()
    event.pk, event.number, event.previous_hash = uuid4(), COUNT + 1, event.hash
    event.hash = hash_form(canonical_form(event))
    event.save(force_insert=True)


def remove_the_record(log: Persona) -> None:
    AuditChain.objects.filter(pk=log.organization.pk).delete()


@pytest.mark.parametrize(
    ("tamper", "intact", "said"),
    [
        (change_words, 3, "event 4 was changed"),
        (change_the_time, 3, "event 4 was changed"),
        (change_and_hash_anew, 4, "event 5 does not follow event 4"),
        (remove_one, 3, "event 4 is missing"),
        (remove_some, 2, "events 3 to 5 are missing"),
        (shift_down_after_removing, 3, "event 4 does not follow event 3"),
        (insert_one, 4, "event 5 does not follow event 4"),
        (swap_two, 3, "event 4 does not follow event 3"),
        (cut_the_tail, 5, "events 6 to 7 are missing: the end was cut off"),
        (remove_all, 0, "events 1 to 7 are missing: the end was cut off"),
        (cut_the_tail_and_its_record, 5, "event 5 is not the one recorded as the log's end"),
        (append_behind, 8, "recorded as event 7, but there are 8"),
        (remove_the_record, 7, "the record of the log's end is missing"),
    ],
)
def test_what_a_superuser_did_is_found(
    log: Persona, tamper: Callable[[Persona], None], intact: int, said: str
) -> None:
    with superuser():
        tamper(log)
    answer = verify()
    assert f"{log.organization.pk}: BROKEN. {intact} events are intact, then " in answer
    assert said in answer
    assert answer.endswith("1 of the audit logs are broken.")
    assert verify("--organization", str(log.organization.pk)) == answer


def test_intact_logs_are_said_to_be(log: Persona, mallory: Persona) -> None:
    note(mallory)
    assert sorted(verify().splitlines()) == sorted(
        [
            f"{log.organization.pk}: {COUNT} events are intact.",
            f"{mallory.organization.pk}: 1 events are intact.",
        ]
    )
    assert verify("--organization", str(mallory.organization.pk)).startswith(
        str(mallory.organization.pk)
    )


def test_a_broken_log_spoils_no_other(log: Persona, mallory: Persona) -> None:
    note(mallory)
    with superuser():
        change_words(log)
    assert f"{mallory.organization.pk}: 1 events are intact." in verify()
    assert verify("--organization", str(mallory.organization.pk)).endswith("intact.\n")


def test_events_appended_meanwhile_are_no_fault(
    log: Persona, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk ends, an event comes, and then the end's record is read."""

    def walk(found: Any) -> Any:
        yield from reading.in_order(found)
        note(log)

    monkeypatch.setattr(verification, "in_order", walk)
    report = verification.verify_chain(log.organization.pk)
    assert (report.intact_count, report.fault) == (COUNT, "")
    assert len(events_of(log)) == COUNT + 1


def test_an_unknown_organization_is_refused() -> None:
    assert "There is no organization" in verify("--organization", str(uuid4()))
