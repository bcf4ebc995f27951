"""The audit log is appended to in the act's own transaction, without a gap, and never changed."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection, connections, transaction
from django.test import RequestFactory
from django.utils import translation

from accounts import services
from accounts.audit.actors import client_address
from accounts.audit.recording import record
from accounts.audit.verification import verify_chain
from accounts.audit_actions import AuditAction
from accounts.models import AuditChain, AuditEvent, Organization
from accounts.sign_in.rates import spend_guest_token
from accounts.tests.browsers import new_browser, post
from tests.fixtures.personas import Persona, api

APPENDERS = 20


def note(persona: Persona, **fields: Any) -> int:
    organization = persona.organization
    action = AuditAction.ORGANIZATION_CHANGED
    return record(persona.actor, action, organization, organization_id=organization.pk, **fields)


def events_of(persona: Persona) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(organization=persona.organization).order_by("number"))


@pytest.mark.django_db
class TestAppend:
    def test_each_event_holds_the_hash_of_the_one_before(self, alice):
        assert [note(alice) for _ in range(3)] == [1, 2, 3]
        first, second, third = events_of(alice)
        assert (first.previous_hash, second.previous_hash) == ("", first.hash)
        end = AuditChain.objects.get(organization=alice.organization)
        assert (end.number, end.hash) == (3, third.hash)
        assert third.previous_hash == second.hash != third.hash
        assert first.created_at < second.created_at < third.created_at

    def test_what_is_recorded_does_not_depend_on_the_operator_s_language(self, alice):
        """The kind of the target is part of the hash, and what clients and the admin go by."""
        with translation.override("zh-hans"):
            assert str(Organization._meta.verbose_name) != "organization"
            note(alice)
        assert [event.target_kind for event in events_of(alice)] == ["organization"]

    def test_organizations_have_chains_of_their_own(self, alice, mallory):
        note(alice)
        assert note(mallory) == 1
        assert (events_of(alice)[0].number, events_of(mallory)[0].number) == (1, 1)

    def test_an_act_that_is_undone_leaves_no_event_and_no_gap(self, alice):
        note(alice)
        with pytest.raises(RuntimeError), transaction.atomic():
            assert note(alice) == 2
            raise RuntimeError
        assert note(alice) == 2
        assert verify_chain(alice.organization.pk).fault == ""

    def test_a_refused_request_has_none(self, alice, bob):
        count = AuditEvent.objects.count()
        assert (
            api(bob).patch(f"/api/v1/organizations/{alice.organization.pk}/", {}).status_code == 403
        )
        assert AuditEvent.objects.count() == count

    def test_an_organization_that_is_gone_has_none(self, alice):
        gone = Organization(name="Gone", slug="gone")
        assert record(alice.actor, AuditAction.KEY_MADE, gone, organization_id=gone.pk) == 0

    def test_what_postgres_gives_back_hashes_as_what_was_written(self, alice):
        detail = {
            "words": '\u00e9 \u4e2d \U0001f600 \\ "',
            "number": 10**15,
            "list": ["b", "a"],
            "none": None,
        }
        note(alice, label="L\u00e4nge" * 100, detail=detail)
        assert verify_chain(alice.organization.pk).fault == ""

    def test_a_key_of_anothers_organization_acts_with_its_id(self, alice):
        key, secret = alice.new_key()
        row = api(key=secret).post("/api/v1/assistants/", {"name": "A", "shared": True})
        assert row.status_code == 201
        (event,) = AuditEvent.objects.filter(target_id=row.json()["id"])
        assert (event.actor_kind, event.actor_user_id, event.actor_key_id) == (
            "key",
            alice.user.pk,
            key.pk,
        )
        assert secret not in str(vars(event))


@pytest.mark.django_db
class TestStay:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE accounts_auditevent SET address = '192.0.2.1'",
            "DELETE FROM accounts_auditevent",
            "TRUNCATE accounts_auditevent",
            "TRUNCATE accounts_organization CASCADE",
        ],
    )
    def test_nobody_changes_or_deletes_an_event(self, alice, statement):
        note(alice)
        with (
            pytest.raises(Error, match="can only be appended to"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(statement)
        assert len(events_of(alice)) == 1

    def test_a_table_that_hides_the_organizations_does_not_help(self, alice):
        note(alice)
        with (
            pytest.raises(Error, match="can only be appended to"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("CREATE TEMP TABLE accounts_organization (id uuid) ON COMMIT DROP")
            cursor.execute("DELETE FROM accounts_auditevent")

    def test_they_go_with_their_organization(self, alice, mallory):
        note(alice)
        note(mallory)
        Organization.objects.filter(pk=alice.organization.pk).delete()
        assert not events_of(alice)
        assert not AuditChain.objects.filter(pk=alice.organization.pk).exists()
        assert len(events_of(mallory)) == 1


@pytest.mark.django_db(transaction=True)
def test_twenty_who_append_at_once_make_one_chain(alice):
    def append(_: int) -> int:
        try:
            return note(alice)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(APPENDERS) as threads:
        numbers = list(threads.map(append, range(APPENDERS)))
    assert sorted(numbers) == list(range(1, APPENDERS + 1))
    report = verify_chain(alice.organization.pk)
    assert (report.intact_count, report.fault) == (APPENDERS, "")
    times = [event.created_at for event in events_of(alice)]
    assert times == sorted(times)


@pytest.mark.django_db
class TestAddress:
    def test_it_is_the_one_that_the_trusted_proxy_tells(self, alice, settings):
        settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
        forwarded = {"X-Forwarded-For": "203.0.113.1, 198.51.100.7"}
        organization = f"/api/v1/organizations/{alice.organization.pk}/"
        answer = api(alice).patch(organization, {"retention_days": 9}, headers=forwarded)
        assert answer.status_code == 200
        assert events_of(alice)[0].address == "198.51.100.7"

    def test_a_request_is_not_refused_for_want_of_one(self, settings):
        settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
        request = RequestFactory().get("/", headers={"X-Forwarded-For": "203.0.113.1"})
        with pytest.raises(ImproperlyConfigured):
            spend_guest_token(request)
        assert client_address(request) == ""


@pytest.mark.django_db
def test_an_unknown_address_is_logged_alone(alice, caplog, settings):
    before = AuditEvent.objects.count()
    answer = post(new_browser(), "login", {"email": "no@example.com", "password": "x"})
    assert answer.status_code == 400
    assert AuditEvent.objects.count() == before
    said = next(each for each in caplog.messages if "unknown_sign_in_failed" in each)
    assert "no@example.com" not in said


@pytest.mark.django_db
def test_signing_in_to_the_admin_is_told_too(alice, client, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    operator = services.sign_up("root@example.com", password="good words", operator=True)
    for password in ("wrong", "good words"):
        client.post("/admin/login/", {"username": operator.email, "password": password})
    told = AuditEvent.objects.filter(target_id=operator.pk).order_by("number")
    assert [event.action for event in told] == ["sign_in.failed", "sign_in.succeeded"]
