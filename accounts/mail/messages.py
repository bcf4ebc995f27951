"""Lay out a mail: one template for plain text and one for HTML, the same for all kinds.

Refuses lines in headers: what people chose as a name becomes one line of a subject, and Django raises
for the rest. HTML is escaped by the template.
"""

from email.utils import formataddr, parseaddr
from typing import Final

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.mail.texts import NOTICES, Details, MailText, page_address, platform_name, text_of

MAX_SUBJECT_CHARS: Final = 200
SETTINGS_PAGE: Final = "settings"
"""The page on which people switch notices off."""


def write_message(
    kind: str, details: Details, *, to: str, language: str = "", mail_id: str = ""
) -> EmailMultiAlternatives:
    """Return the message in this language, or in the installation's.

    `mail_id` makes the Message-ID, the same for each attempt, so that a mail server can tell a mail that
    comes twice. Raises KeyError for an unknown kind, ValueError for an address that is none.
    """
    with translation.override(language or settings.AMBER_LANGUAGE):
        return _lay_out(text_of(kind, details), to=to, mail_id=mail_id, is_notice=kind in NOTICES)


def write_test_message(to: str) -> EmailMultiAlternatives:
    """Return a message that tells an operator that mails arrive."""
    with translation.override(settings.AMBER_LANGUAGE):
        text = MailText(
            subject=_("Test mail of {platform}").format(platform=platform_name()),
            paragraphs=(_("This installation can send email: you are reading one."),),
        )
        return _lay_out(text, to=to, mail_id="", is_notice=False)


def _lay_out(text: MailText, *, to: str, mail_id: str, is_notice: bool) -> EmailMultiAlternatives:
    context = {
        "text": text,
        "platform": platform_name(),
        "language": translation.get_language() or settings.AMBER_LANGUAGE,
        "settings_address": page_address(SETTINGS_PAGE) if is_notice else "",
    }
    message = EmailMultiAlternatives(
        subject=_one_line(text.subject)[:MAX_SUBJECT_CHARS],
        body=render_to_string("accounts/mail/message.txt", context),
        from_email=sender(),
        to=[to],
        headers=_headers(mail_id, is_notice=is_notice),
    )
    message.attach_alternative(render_to_string("accounts/mail/message.html", context), "text/html")
    return message


def sender() -> str:
    """Return the sender of mails, under the platform's name unless the setting has one."""
    name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return formataddr((name or platform_name(), address))


def _headers(mail_id: str, *, is_notice: bool) -> dict[str, str]:
    """Return headers that keep automatic answers away (RFC 3834), and say where notices end (RFC
    2369)."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    headers = {"Auto-Submitted": "auto-generated"}
    if mail_id:
        headers["Message-ID"] = f"<{mail_id}@{domain}>"
    if is_notice and settings.AMBER_PUBLIC_URL:
        headers["List-Unsubscribe"] = f"<{page_address(SETTINGS_PAGE)}>"
    return headers


def _one_line(text: str) -> str:
    return " ".join(text.split())
