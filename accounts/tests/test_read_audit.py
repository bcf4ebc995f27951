"""Owners and admins read and export their organization's audit log; others see nothing of it."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.conf import settings as django_settings

from accounts.audit_actions import AuditAction
from accounts.models import AuditEvent, User
from accounts.tests.test_record_audit import note
from tests.fixtures.personas import Persona, api

ALL = "/api/v1/audit/"
EXPORT = f"{ALL}export/"
PAGE = Path(django_settings.BASE_DIR) / "docs" / "audit.md"


def listed(persona: Persona, **filters: Any) -> list[dict[str, Any]]:
    answer = api(persona).get(ALL, filters)
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def exported(persona: Persona, **filters: Any) -> bytes:
    answer: Any = api(persona).get(EXPORT, filters)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/x-ndjson"

    async def gather() -> bytes:
        return b"".join([piece async for piece in answer])

    return asyncio.run(gather())


@pytest.mark.django_db
class TestList:
    def test_it_shows_every_field_newest_first(self, alice, bob):
        note(alice, label="Acme", detail={"fields": ["name"]})
        newest, joined = listed(alice)
        row = AuditEvent.objects.get(number=2, organization=alice.organization)
        assert newest == {
            "id": str(row.pk),
            "organization_id": str(alice.organization.pk),
            "number": 2,
            "created_at": row.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "action": "organization.changed",
            "actor_kind": "user",
            "actor_user_id": str(alice.user.pk),
            "actor_key_id": None,
            "actor_name": "alice@example.com",
            "target_kind": "organization",
            "target_id": str(alice.organization.pk),
            "target_label": "Acme",
            "target_name": "Acme",
            "address": "",
            "detail": {"fields": ["name"]},
            "previous_hash": joined["hash"],
            "hash": row.hash,
        }
        assert (joined["actor_name"], joined["target_name"]) == ("Operator", "bob@example.com")
        assert joined["target_label"] == ""

    def test_members_and_keys_may_not(self, alice, bob, carol):
        assert api(bob).get(ALL).status_code == 403
        assert api(key=alice.new_key()[1]).get(ALL).status_code == 403
        assert api(carol).get(ALL).status_code == 200
        assert api().get(ALL).status_code == 401

    @pytest.mark.parametrize("path", [ALL, EXPORT])
    def test_only_reading_is_possible(self, alice, path):
        for method in ("post", "put", "patch", "delete"):
            assert getattr(api(alice), method)(path).status_code == 405

    def test_another_tenants_is_never_in_it(self, alice, mallory, bob):
        note(alice)
        note(mallory)
        assert {each["organization_id"] for each in listed(mallory)} == {
            str(mallory.organization.pk)
        }
        own = str(alice.organization.pk)
        assert {each["organization_id"] for each in listed(alice)} == {own}
        assert not listed(mallory, actor_user_id=str(alice.user.pk))

    def test_pages_go_on(self, alice):
        for _ in range(5):
            note(alice)
        page = api(alice).get(ALL, {"limit": 2}).json()
        assert [each["number"] for each in page["results"]] == [5, 4]
        page = api(alice).get(page["next"]).json()
        assert [each["number"] for each in page["results"]] == [3, 2]

    def test_an_erased_person_has_no_name(self, alice, bob):
        User.objects.filter(pk=bob.user.pk).delete()
        (joined,) = listed(alice)
        assert joined["target_name"] == "Erased person"
        assert b"bob@example.com" not in orjson.dumps(listed(alice))


@pytest.mark.django_db
class TestFilter:
    def test_by_action_actor_and_target(self, alice, bob, carol):
        note(alice)
        bob_id, alice_id = str(bob.user.pk), str(alice.user.pk)
        assert [e["action"] for e in listed(alice, action="member.joined")] == ["member.joined"] * 2
        assert [e["action"] for e in listed(alice, actor_user_id=alice_id)] == [
            "organization.changed"
        ]
        assert [e["target_id"] for e in listed(alice, target_id=bob_id)] == [bob_id]
        assert len(listed(alice, target_kind="organization")) == 1
        assert not listed(alice, target_kind="organization", target_id=bob_id)

    def test_by_days(self, alice):
        note(alice)
        day = AuditEvent.objects.get().created_at.date().isoformat()
        assert len(listed(alice, **{"from": day, "to": day})) == 1
        assert not listed(alice, **{"from": "9999-12-31"})
        assert len(listed(alice, **{"from": "0001-01-01", "to": "9999-12-31"})) == 1
        assert not listed(alice, to="2001-01-01")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("action", "everything"),
            ("actor_user_id", "alice"),
            ("target_id", "1"),
            ("from", "yesterday"),
            ("to", "2031-13-01"),
        ],
    )
    @pytest.mark.parametrize("path", [ALL, EXPORT])
    def test_nonsense_is_400_and_names_the_field(self, alice, path, name, value):
        answer = api(alice).get(path, {name: value})
        assert answer.status_code == 400
        assert list(answer.json()["error"]["fields"]) == [name]
        assert not AuditEvent.objects.filter(action=AuditAction.AUDIT_EXPORTED)


@pytest.mark.django_db(transaction=True)
class TestExport:
    def verify(self, lines: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run the program of docs/audit.md."""
        (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        return subprocess.run(
            [sys.executable, "-c", program], input=lines, capture_output=True, check=False
        )

    def test_it_has_all_that_verification_needs(self, alice, bob):
        for number in range(3):
            note(alice, label="\u00dcber", detail={"n": number})
        lines = exported(alice)
        events = [orjson.loads(line) for line in lines.splitlines()]
        assert [event["number"] for event in events] == [1, 2, 3, 4, 5]
        assert events[:-1] == listed(alice)[:0:-1]
        answer = self.verify(lines)
        assert answer.stdout == b"5 events are intact\n", answer.stderr

    def test_a_changed_line_and_a_missing_one_are_found(self, alice):
        for _ in range(3):
            note(alice)
        lines = exported(alice).splitlines(keepends=True)
        changed = lines[1].replace(b"organization.changed", b"key.made")
        for tampered in ([lines[0], changed, *lines[2:]], [lines[0], *lines[2:]]):
            assert self.verify(b"".join(tampered)).returncode == 1

    def test_it_is_itself_an_event_and_the_last_in_it(self, alice):
        note(alice)
        last = orjson.loads(exported(alice).splitlines()[-1])
        assert (last["action"], last["actor_user_id"]) == ("audit.exported", str(alice.user.pk))
        assert AuditEvent.objects.filter(organization=alice.organization).count() == 2

    def test_filters_hold_for_it_and_are_told(self, alice, bob):
        note(alice)
        filters = {"action": "member.joined", "target_id": str(bob.user.pk)}
        (line,) = exported(alice, **filters).splitlines()
        assert orjson.loads(line)["target_name"] == "bob@example.com"
        assert AuditEvent.objects.get(action=AuditAction.AUDIT_EXPORTED).detail == filters

    def test_members_keys_and_strangers_may_not(self, alice, bob, mallory):
        note(alice)
        assert api(bob).get(EXPORT).status_code == 403
        assert api(key=alice.new_key()[1]).get(EXPORT).status_code == 403
        assert str(alice.organization.pk).encode() not in exported(mallory)
        assert not AuditEvent.objects.filter(
            organization=alice.organization, action=AuditAction.AUDIT_EXPORTED
        )

    def test_a_client_may_ask_for_lines(self, alice, bob):
        lines = {"Accept": "application/x-ndjson"}
        assert api(alice).get(EXPORT, headers=lines).status_code == 200
        refused = orjson.loads(api(bob).get(EXPORT, headers=lines).content)
        assert refused["error"]["code"] == "forbidden"
