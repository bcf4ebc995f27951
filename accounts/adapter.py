"""How allauth behaves here: sign-up can be closed; a new account gets its personal organization."""

import json
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from accounts.models import Invitation, User
from accounts.services import give_personal_organization


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """A closed installation still lets in whoever was invited."""
        return may_sign_up(_email_given(request))

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        with transaction.atomic():
            saved: User = super().save_user(request, user, form, commit)
            if commit:
                give_personal_organization(saved)
        return saved

    def login(self, request: HttpRequest, user: User) -> None:
        """Users made by `createsuperuser` or by hand have no organization until here."""
        give_personal_organization(user)
        super().login(request, user)


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return may_sign_up(sociallogin.user.email)

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        """Amber keeps one name; allauth knows of first and last ones only."""
        user: User = super().populate_user(request, sociallogin, data)
        user.name = str(data.get("name") or "")[:200]
        return user

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        with transaction.atomic():
            saved: User = super().save_user(request, sociallogin, form)
            give_personal_organization(saved)
        return saved


def may_sign_up(email: str) -> bool:
    """Closed means by invitation only: the address must have an open one."""
    if settings.AMBER_OPEN_SIGNUP:
        return True
    return Invitation.objects.open().filter(email__iexact=email).exists()


def _email_given(request: HttpRequest) -> str:
    """In the JSON of allauth's sign-up; empty in any other request."""
    if request.content_type != "application/json" or not request.body:
        return ""
    try:
        given = json.loads(request.body)
    except ValueError:
        return ""
    return str(given.get("email", "")) if isinstance(given, dict) else ""
