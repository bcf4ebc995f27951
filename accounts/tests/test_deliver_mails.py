"""Test mails against a real mail server: what they say, that none is lost or sent twice, and what an
operator is told."""

import io
from datetime import timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from accounts.mail import delivery
from accounts.mail.delivery import deliver_due, forget_mails, send_again
from accounts.mail.messages import write_message
from accounts.mail.outbox import GATHERED, Recipient, gather_mail, owners_of, post_mail
from accounts.models import MailKind, MailStatus, OutgoingMail
from amber.lib.environment import mail_server
from amber.lib.workers.guard import fault_counts
from tests.fakes.mail_server import PASSWORD, USER, Mailbox, self_signed, smtp_server, with_login
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db

INVITED = {"organization": "Acme", "inviter": "Alice", "until": "2026-12-01", "token": "tok-1"}
BUDGET = {
    "organization": "Acme",
    "scope": "organization",
    "period": "month",
    "share": 80,
    "used": "80",
    "limit": "100",
    "resets_at": "2026-12-01 00:00",
}


@pytest.fixture
def box():
    return Mailbox()


@pytest.fixture
def use(settings, monkeypatch):
    """`use("smtp://…")`: as AMBER_SMTP_URL makes it."""

    def point(url: str) -> None:
        monkeypatch.setenv("AMBER_SMTP_URL", url)
        for name, value in mail_server("AMBER_SMTP_URL").items():
            setattr(settings, name, value)
        settings.AMBER_SENDS_MAIL = True
        settings.AMBER_PUBLIC_URL = "https://amber.example"
        settings.DEFAULT_FROM_EMAIL = "amber@mail.example"

    return point


@pytest.fixture
def server(box, use):
    """A plain mail server, which is used."""
    with smtp_server(box) as port:
        use(f"smtp://127.0.0.1:{port}?tls=none")
        yield box


def invite(
    address: str = "eve@example.com", cause: str = "invitation:1", **details: Any
) -> OutgoingMail:
    recipient = Recipient(address)
    assert post_mail(MailKind.INVITATION, recipient, cause=cause, details=INVITED | details)
    return OutgoingMail.objects.get(cause=cause, address=address)


def deliver_now() -> None:
    """Deliver without waiting for when the mails are due."""
    OutgoingMail.objects.filter(status=MailStatus.QUEUED).update(due_at=timezone.now())
    deliver_due()


def state(mail: OutgoingMail) -> tuple[str, int, str]:
    mail.refresh_from_db()
    return mail.status, mail.attempt, mail.error


def bodies(message: EmailMessage) -> dict[str, str]:
    return {
        part.get_content_type(): part.get_content().replace("\r\n", "\n")
        for part in message.iter_parts()
    }


# -- The way to the server -------------------------------------------------------------------------


def test_starttls_and_login_are_used_and_the_certificate_is_checked(
    box, use, tmp_path, monkeypatch, settings
):
    context, public = self_signed(tmp_path)
    with smtp_server(box, **with_login(box, context)) as port:
        use(f"smtp://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}")
        mail = invite()
        deliver_due()
        status, attempts, error = state(mail)
        assert (status, attempts) == ("queued", 1)
        assert "certificate" in error, "nobody vouches for it yet"
        monkeypatch.setenv("SSL_CERT_FILE", str(public))
        deliver_now()
        assert state(mail) == ("sent", 2, "")
        assert (box.was_encrypted, box.logins) == ([True], [USER])
        settings.EMAIL_HOST_PASSWORD = "wrong"
        refused = invite(cause="invitation:2")
        deliver_due()
        assert "refuses the user name or password" in state(refused)[2]
        assert "wrong" not in state(refused)[2]


def test_tls_from_the_start(box, use, tmp_path, monkeypatch):
    context, public = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    with smtp_server(box, ssl_context=context) as port:
        use(f"smtps://127.0.0.1:{port}")
        mail = invite()
        deliver_due()
    assert state(mail) == ("sent", 1, "")


def test_a_server_that_is_away_or_has_no_starttls_is_tried_again(box, use):
    with smtp_server(box) as port:
        use(f"smtp://127.0.0.1:{port}")
        mail = invite()
        deliver_due()
        assert "STARTTLS" in state(mail)[2]
    deliver_now()
    status, attempts, error = state(mail)
    assert (status, attempts) == ("queued", 2)
    assert "no connection" in error
    assert not box.messages


# -- What arrives ----------------------------------------------------------------------------------


def test_an_invitation_is_readable_as_text_and_html(server):
    invite()
    deliver_due()
    (message,) = server.messages
    assert server.recipients == ["eve@example.com"]
    assert message["Subject"] == "You are invited to “Acme”"
    assert message["From"] == "Amber <amber@mail.example>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "List-Unsubscribe" not in message
    shown = bodies(message)
    assert list(shown) == ["text/plain", "text/html"]
    for text in shown.values():
        assert "Alice invites you to work in “Acme”" in text
        assert "https://amber.example/invitation/tok-1" in text
    assert "<" not in shown["text/plain"]


def test_a_mail_to_nobody_known_is_in_the_installations_language(settings):
    settings.AMBER_LANGUAGE = "zh-hans"
    for language, spoken in (("", "zh-hans"), ("en", "en")):
        message = write_message(MailKind.INVITATION, INVITED, to="e@example.com", language=language)
        assert f'<html lang="{spoken}">' in str(message.alternatives[0][0])


def test_a_german_reads_german():
    message = write_message(MailKind.INVITATION, INVITED, to="e@example.com", language="de")
    assert message.subject == "Einladung zu „Acme“"
    assert "Alice lädt Sie ein, auf Amber in „Acme“ zu arbeiten." in message.body
    assert '<html lang="de">' in str(message.alternatives[0][0])
    assert "Falls die Schaltfläche nicht funktioniert" in str(message.alternatives[0][0])


@pytest.mark.parametrize(
    ("language", "unit", "said"),
    [
        ("en", "tokens", "Used: 1,234,568 tokens of 2,000,000 tokens."),
        ("en", "money", "Used: 1,234,567.89 of 2,000,000.00."),
        ("de", "tokens", "Verbraucht: 1.234.568 Tokens von 2.000.000 Tokens."),
        ("de", "money", "Verbraucht: 1.234.567,89 von 2.000.000,00."),
        ("zh-hans", "tokens", "已用：1234568 个 Token / 2000000 个 Token。"),
        ("zh-hans", "money", "已用：1234567.89 / 2000000.00。"),
    ],
)
def test_amounts_are_written_as_the_language_does(language, unit, said):
    details = BUDGET | {"used": "1234567.88500001", "limit": "2000000", "unit": unit}
    assert said in write_message(MailKind.BUDGET, details, to="a@b.example", language=language).body


def test_a_mail_that_waited_for_a_new_release_keeps_its_amounts():
    details = {name: value for name, value in BUDGET.items() if name != "unit"}
    waited = details | {"used": "800 tokens", "limit": "1,000 tokens"}
    message = write_message(MailKind.BUDGET, waited, to="a@b.example", language="de")
    assert "Verbraucht: 800 tokens von 1,000 tokens." in message.body


def test_names_are_neither_headers_nor_markup(server):
    evil = 'Acme"\r\nBcc: all@example.com\r\n\r\n<script>alert(1)</script> & <a href="https://evil.example">x'
    invite(organization=evil, inviter="<b>Eve</b>\n\nBcc: x@example.com")
    deliver_due()
    (message,) = server.messages
    assert server.recipients == ["eve@example.com"]
    assert "Bcc" not in message
    assert "\n" not in message["Subject"]
    html = bodies(message)["text/html"]
    assert "<script" not in html
    assert "<b>" not in html
    assert 'href="https://evil' not in html
    assert "&lt;b&gt;Eve" in html


@pytest.mark.parametrize("address", ["eve@example.com\nBcc: all@example.com", "eve"])
def test_an_address_that_is_none_gets_nothing(server, address):
    mail = invite(address)
    deliver_due()
    assert state(mail)[0] == "failed"
    assert not server.messages


def test_the_platform_s_name_is_the_setting_s(settings):
    settings.AMBER_NAME = "Stone"
    message = write_message(MailKind.INVITATION, INVITED, to="a@example.com")
    assert message.from_email.startswith("Stone <")
    assert "Stone" in message.body


def test_every_kind_has_words():
    details = (
        INVITED
        | BUDGET
        | {
            "address": "https://amber.example/x",
            "subject": "S",
            "text": "T",
            "library": "Manuals",
            "library_id": "1",
            "git_url": "https://git.example/x",
            "error": "No.",
            "count": 21,
            "items": [{"name": "a.pdf", "error": "Damaged."}],
        }
    )
    for kind in MailKind.values:
        message = write_message(kind, details, to="a@example.com")
        assert message.subject
        assert "{" not in message.subject + str(message.body), kind


# -- Once, and not lost ----------------------------------------------------------------------------


def test_one_cause_is_told_once(server):
    for _ in range(3):
        invite()
    deliver_due()
    invite()
    deliver_due()
    assert len(server.messages) == 1


def test_what_is_undone_is_not_told(server):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        invite()
        raise ZeroDivisionError
    deliver_due()
    assert not server.messages


def test_where_no_mail_is_sent_none_is_written(settings):
    settings.AMBER_SENDS_MAIL = False
    assert not post_mail(MailKind.INVITATION, Recipient("a@b.example"), cause="c", details={})
    assert not OutgoingMail.objects.exists()


def test_a_secret_is_encrypted_and_goes_when_it_was_sent(server):
    mail = invite(token="very-secret")
    assert mail.details_sealed
    assert "very-secret" not in mail.details_sealed
    deliver_due()
    mail.refresh_from_db()
    assert mail.details_sealed == ""


def test_a_refusal_for_now_is_tried_again_and_one_for_good_is_not(server):
    server.refusals = ["451 Try later", "DATA 452 Full"]
    mail = invite()
    deliver_due()
    assert state(mail)[:2] == ("queued", 1)
    assert mail.due_at > timezone.now() + timedelta(seconds=delivery.RETRY_SECONDS[0] - 5)
    deliver_due()
    assert state(mail)[1] == 1, "not before it is due"
    deliver_now()
    assert "452 Full" in state(mail)[2]
    deliver_now()
    assert state(mail) == ("sent", 3, "")
    for refusal in ("550 No such user", "DATA 554 Spam"):
        server.refusals = [refusal]
        bad = invite(cause=refusal)
        deliver_due()
        assert state(bad)[:2] == ("failed", 1)
        assert refusal.removeprefix("DATA ") in bad.error
    assert len(server.messages) == 1


def test_attempts_end_and_the_failure_is_counted(server):
    mail = invite()
    before = fault_counts().get(delivery.PART, 0)
    attempts = len(delivery.RETRY_SECONDS) + 1
    server.refusals = ["451 Try later"] * attempts
    for _ in range(attempts + 2):
        deliver_now()
    assert state(mail)[:2] == ("failed", attempts)
    assert server.attempts == attempts
    assert fault_counts()[delivery.PART] == before + 1
    assert send_again(mail)
    assert not send_again(mail)
    deliver_due()
    assert state(mail)[0] == "sent"


def test_what_may_have_arrived_is_not_sent_again(server):
    server.hangs_up_after_data = True
    mail = invite()
    deliver_due()
    assert state(mail) == ("failed", 1, delivery.MAY_HAVE_ARRIVED)
    assert len(server.messages) == 1


def test_a_lost_worker_s_mail_is_sent_unless_the_server_may_have_it(server):
    waiting, handed = invite(), invite(cause="invitation:2")
    for mail in (waiting, handed):
        OutgoingMail.objects.claim(mail.pk, worker="gone", lease_seconds=-1)
    OutgoingMail.objects.filter(pk=handed.pk).update(handed_at=timezone.now())
    deliver_due()
    assert state(waiting)[0] == "sent"
    assert state(handed) == ("failed", 1, delivery.MAY_HAVE_ARRIVED)


def test_each_attempt_has_the_same_message_id(server):
    mail = invite()
    deliver_due()
    assert server.messages[0]["Message-ID"] == f"<{mail.pk}@mail.example>"


def test_old_mails_are_forgotten_and_waiting_ones_are_not(server):
    sent, waiting = invite(), invite(cause="invitation:2")
    OutgoingMail.objects.filter(pk=waiting.pk).update(due_at=timezone.now() + timedelta(days=1))
    deliver_due()
    OutgoingMail.objects.update(created_at=timezone.now() - timedelta(days=31))
    forget_mails()
    assert list(OutgoingMail.objects.values_list("pk", flat=True)) == [waiting.pk] != [sent.pk]


# -- Notices ---------------------------------------------------------------------------------------


def warn(persona: Persona) -> bool:
    (owner,) = owners_of(persona.organization.pk)
    return post_mail(MailKind.BUDGET, owner, cause="budget:1", details=BUDGET)


def test_a_notice_says_where_it_is_switched_off(server, alice):
    assert warn(alice)
    deliver_due()
    (message,) = server.messages
    assert message["To"] == alice.user.email
    assert message["List-Unsubscribe"] == "<https://amber.example/settings>"
    assert "https://amber.example/settings\n" in bodies(message)["text/plain"]


def test_who_switched_notices_off_gets_what_they_need_alone(server, alice):
    alice.user.mail_notices = False
    alice.user.save()
    assert not warn(alice)
    reset = {"address": "https://amber.example/reset-password/1"}
    recipient = Recipient.of(alice.user)
    assert post_mail(MailKind.PASSWORD_RESET, recipient, cause="reset:1", details=reset)
    deliver_due()
    assert [message["Subject"] for message in server.messages] == ["Choose a new password"]


def test_what_fails_together_is_told_in_one_mail(server, alice):
    for number in range(25):
        gather_mail(
            MailKind.FAILED_DOCUMENTS,
            Recipient.of(alice.user),
            cause="documents:1",
            details={"library": "Manuals", "library_id": "1"},
            item={"name": f"{number}.pdf", "error": "Damaged."},
            organization_id=alice.organization.pk,
        )
    mails = list(OutgoingMail.objects.all())
    assert 1 <= len(mails) <= 2, "a stretch may end meanwhile"
    assert all(mail.due_at <= timezone.now() + GATHERED for mail in mails)
    deliver_due()
    assert not server.messages, "there may come more"
    deliver_now()
    text = "".join(bodies(message)["text/plain"] for message in server.messages)
    assert "- 0.pdf: Damaged." in text
    if len(mails) == 1:
        assert (
            server.messages[0]["Subject"].strip()
            == "25 documents of “Manuals” could not be indexed"
        )
        assert "and 5 more" in text


def test_who_has_left_meanwhile_is_told_nothing(server, alice):
    gather_mail(
        MailKind.FAILED_DOCUMENTS,
        Recipient.of(alice.user),
        cause="documents:1",
        details={"library": "Manuals", "library_id": "1"},
        item={"name": "salaries.pdf", "error": "Damaged."},
        organization_id=alice.organization.pk,
    )
    alice.user.memberships.all().delete()
    deliver_now()
    assert not server.messages
    mail = OutgoingMail.objects.get()
    assert state(mail)[::2] == ("cancelled", "They have left the organization meanwhile.")
    assert not mail.details_sealed


# -- The operator ----------------------------------------------------------------------------------


def told(*arguments: str) -> str:
    out = io.StringIO()
    call_command("send_test_mail", *arguments, stdout=out)
    return out.getvalue()


def test_a_test_mail_is_sent_at_once(server):
    assert "took the mail" in told("op@example.com")
    assert server.messages[0]["Subject"] == "Test mail of Amber"


@pytest.mark.parametrize(
    ("address", "changes", "refusal", "wanted"),
    [
        ("op@example.com", {"AMBER_SENDS_MAIL": False}, "", "AMBER_SMTP_URL is empty"),
        ("op", {}, "", "'op' is no email address"),
        ("op@example.com", {"DEFAULT_FROM_EMAIL": "x"}, "", "AMBER_EMAIL_FROM"),
        ("op@example.com", {}, "550 Unknown", "refuses the address: 550 Unknown"),
        ("op@example.com", {"EMAIL_PORT": 1}, "", "no connection to the mail server"),
        ("op@example.com", {"EMAIL_USE_TLS": True}, "", "STARTTLS"),
    ],
)
def test_a_test_mail_that_fails_says_why(server, settings, address, changes, refusal, wanted):
    server.refusals = [refusal] if refusal else []
    for name, value in changes.items():
        setattr(settings, name, value)
    with pytest.raises(CommandError, match=wanted):
        told(address)
    assert django_settings.EMAIL_HOST == "127.0.0.1"
