"""Test that invitations are mailed where mail is sent: in whose language, how many, and what is told."""

from typing import Any

import pytest
from django.utils import timezone

from accounts.mail.delivery import deliver_due
from accounts.mail.outbox import open_details
from accounts.models import MailStatus, Organization, OutgoingMail, User
from tests.fixtures.personas import Persona, api

pytestmark = pytest.mark.django_db


def invitations(persona: Persona) -> str:
    return f"/api/v1/organizations/{persona.organization.pk}/invitations/"


def invite(persona: Persona, email: str) -> Any:
    return api(persona).post(invitations(persona), {"email": email})


@pytest.fixture(autouse=True)
def mailing(settings):
    settings.AMBER_SENDS_MAIL = True


def test_the_link_is_mailed_and_the_inviter_told(alice):
    made = invite(alice, "New@Example.com").json()
    assert made["is_mailed"]
    mail = OutgoingMail.objects.get()
    assert (mail.address, mail.kind) == ("new@example.com", "invitation")
    assert mail.organization == alice.organization
    details = open_details(mail)
    assert details["token"] == made["token"] not in str(mail.__dict__)
    assert (details["organization"], details["inviter"]) == ("Acme", "Alice")
    assert [row["is_mailed"] for row in api(alice).get(invitations(alice)).json()["results"]] == [
        True
    ]


def test_inviting_again_mails_the_new_link(alice):
    tokens = [invite(alice, "new@example.com").json()["token"] for _ in range(2)]
    mails = OutgoingMail.objects.order_by("created_at")
    assert [open_details(mail)["token"] for mail in mails] == tokens


def test_the_language_is_the_invited_person_s_or_else_the_inviter_s(alice, mallory):
    User.objects.filter(pk=alice.user.pk).update(language="zh-hans")
    User.objects.filter(pk=mallory.user.pk).update(language="en")
    alice.user.refresh_from_db()
    for email in ("new@example.com", mallory.user.email):
        invite(alice, email)
    mails = OutgoingMail.objects.order_by("created_at")
    assert [mail.language for mail in mails] == ["zh-hans", "en"]


def test_who_is_not_invited_any_more_gets_no_mail(alice, mallory, mailoutbox):
    for _ in range(2):  # the second replaces the first
        invite(alice, "new@example.com")
    withdrawn = invite(alice, "wrong@example.com").json()["id"]
    assert api(alice).delete(f"{invitations(alice)}{withdrawn}/").status_code == 204
    invite(mallory, "gone@example.com")
    Organization.objects.filter(pk=mallory.organization.pk).update(deleted_at=timezone.now())
    deliver_due()
    assert [mail.to for mail in mailoutbox] == [["new@example.com"]]
    cancelled = OutgoingMail.objects.filter(status=MailStatus.CANCELLED).order_by("created_at")
    assert [(mail.address, mail.details_sealed) for mail in cancelled] == [
        ("new@example.com", ""),
        ("wrong@example.com", ""),
        ("gone@example.com", ""),
    ]


def test_who_invites_too_many_hands_links_over_by_hand(alice, settings):
    settings.AMBER_RATE_INVITATION_MAIL = 2
    made = [invite(alice, f"{number}@example.com") for number in range(3)]
    assert [answer.json()["is_mailed"] for answer in made] == [True, True, False]
    assert made[-1].json()["token"]
    assert OutgoingMail.objects.count() == 2


def test_without_redis_none_is_mailed(alice, monkeypatch):
    def fail(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr("accounts.services.spend_mail_to_stranger", fail)
    answer = invite(alice, "new@example.com")
    assert (answer.status_code, answer.json()["is_mailed"]) == (201, False)
    assert not OutgoingMail.objects.exists()


def test_one_chooses_one_s_language_and_notices(alice):
    me = "/api/v1/me/"
    assert api(alice).get(me).json()["mail_notices"] is True
    changed = api(alice).patch(me, {"language": "zh-hans", "mail_notices": False})
    assert (changed.json()["language"], changed.json()["mail_notices"]) == ("zh-hans", False)
    assert api(alice).patch(me, {"language": "xx"}).status_code == 400
