"""Adapt allauth: sign-up is by invitation unless it is opened, an address is proved by mail
wherever mail is sent, and a new account gets its personal organization.

Refuses to tell who has an account, in words or by the time that an answer takes.
"""

from typing import Any, Final

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import get_language

from accounts.mail.outbox import Recipient, post_mail, sends_mail
from accounts.models import Invitation, MailKind, User
from accounts.services import give_personal_organization
from accounts.sign_in.identity_providers import has_address
from amber.lib.errors import Invalid
from amber.lib.ids import new_id
from amber.lib.names import plain_name
from amber.lib.rest.wire import parse_object
from amber.lib.secrets import sha256_hex

logger = structlog.get_logger(__name__)

_MAILS: Final = {
    "email_confirmation_signup": (MailKind.ADDRESS_PROOF, "activate_url"),
    "email_confirmation": (MailKind.ADDRESS_PROOF, "activate_url"),
    "password_reset_key": (MailKind.PASSWORD_RESET, "password_reset_url"),
    "account_already_exists": (MailKind.ACCOUNT_EXISTS, "password_reset_url"),
    "unknown_account": (MailKind.NO_ACCOUNT, "signup_url"),
}
"""By the end of allauth's template: what the mail is about, and where its link is in the context."""


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this request may sign up: a closed installation lets in invited people."""
        given = _body_given(request)
        token = given.get("invitation")
        return may_sign_up(
            str(given.get("email", "")), token=token if isinstance(token, str) else ""
        )

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        with transaction.atomic():
            saved: User = super().save_user(request, user, form, commit)
            if commit:
                give_personal_organization(saved)
        return saved

    def pre_login(self, request: HttpRequest, user: User, **login: Any) -> HttpResponse | None:
        """Believe the address of users without one in allauth: an operator created them."""
        _vouch_for(user)
        refusal: HttpResponse | None = super().pre_login(request, user, **login)
        return refusal

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Write the mail into the outbox: a worker sends it, and no request waits for that.

        So also takes as long whether the address has an account or not.
        """
        kind, details = self._kind_of(template_prefix, email, context)
        if not sends_mail():
            logger.warning("mail_not_sent", kind=kind, reason="AMBER_SMTP_URL is not set")
            return
        user = context.get("user")
        language = getattr(user, "language", "") or get_language() or ""
        recipient = Recipient(email, user, language)
        post_mail(kind, recipient, cause=f"{kind}:{new_id()}", details=details)

    def _kind_of(
        self, template_prefix: str, email: str, context: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return what the mail is about. One that Amber has no words for keeps allauth's."""
        kind, link = _MAILS.get(template_prefix.rpartition("/")[2], ("", ""))
        if kind:
            return kind, {"address": str(context.get(link, ""))}
        message = self.render_mail(template_prefix, email, context)
        return MailKind.ACCOUNT_CHANGE, {"subject": message.subject, "text": str(message.body)}

    def format_email_subject(self, subject: str) -> str:
        """Return the subject without a prefix: the sender has the platform's name."""
        return subject

    def respond_email_verification_sent(
        self, request: HttpRequest, user: User | None
    ) -> HttpResponseBase:
        """Answer a sign-up. Without a user the address has an account, and was told so by mail."""
        if user is None:
            _do_and_undo_a_sign_up()
        response: HttpResponseBase = super().respond_email_verification_sent(request, user)
        return response

    def login(self, request: HttpRequest, user: User) -> None:
        """Sign in; users made by `createsuperuser` or by hand get their organization here."""
        give_personal_organization(user)
        super().login(request, user)


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def list_apps(self, request: HttpRequest, **which: Any) -> list[SocialApp]:
        """Leave out what lacks its address: the whole sign-in page would fail by it."""
        apps: list[SocialApp] = super().list_apps(request, **which)
        oidc = OpenIDConnectProvider.id
        return [app for app in apps if app.provider != oidc or has_address(app.settings)]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        email = sociallogin.user.email
        known = [each.email.lower() for each in sociallogin.email_addresses if each.verified]
        return may_sign_up(email, is_proved=email.lower() in known)

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        """Fill in the one name that Amber keeps; allauth knows first and last names only."""
        user: User = super().populate_user(request, sociallogin, data)
        user.name = plain_name(str(data.get("name") or ""))[:200]
        return user

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        with transaction.atomic():
            saved: User = super().save_user(request, sociallogin, form)
            give_personal_organization(saved)
        return saved


def may_sign_up(email: str, *, token: str = "", is_proved: bool = False) -> bool:
    """Return whether this address may have an account.

    A closed installation asks for an open invitation to the address. Where no mail is sent to prove
    the address, whoever signs up must also hold the invitation's token, or an identity provider
    must vouch for the address.
    """
    if settings.AMBER_OPEN_SIGNUP:
        return True
    # Not by Postgres' upper case, in which `ı` is an `i`: that is another address, of another domain.
    invitations = Invitation.objects.open().filter(email=email.lower())
    if not (is_proved or proves_addresses()):
        invitations = invitations.filter(token_sha256=sha256_hex(token))
    return invitations.exists()


def proves_addresses() -> bool:
    """Return whether people must follow a link in a mail before they can sign in."""
    verification: str = settings.ACCOUNT_EMAIL_VERIFICATION
    return verification == "mandatory"


def _vouch_for(user: User) -> None:
    if not EmailAddress.objects.filter(user=user).exists():
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)


def _do_and_undo_a_sign_up() -> None:
    """Do the work of a new account, above all its password's hash, and roll it back.

    An answer that came sooner would tell that the address has an account already.
    """
    with transaction.atomic():
        nobody = User.objects.create_user(f"{new_id().hex}@nobody.invalid", new_id().hex)
        give_personal_organization(nobody)
        _vouch_for(nobody)
        transaction.set_rollback(True)


def _body_given(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON body of allauth's sign-up; empty in any other request."""
    if request.content_type != "application/json":
        return {}
    try:
        return parse_object(request.body)
    except Invalid:
        return {}
