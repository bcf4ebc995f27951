"""Make an account from a script: prints ids, and the API key, as one line of JSON.

An account that exists is used as it is: its password is not changed.
"""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import services
from accounts.models import Organization, Role, User
from amber.lib.errors import AmberError


class Command(BaseCommand):
    help = "Make an account; print its user_id, organization_id and api_key as one JSON line."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--email", required=True)
        parser.add_argument("--password", help="Without one, nobody signs in by password.")
        parser.add_argument("--organization", help="Its name: joined, or made if absent.")
        parser.add_argument("--api-key", action="store_true", help="Make a key there too.")

    def handle(self, *_: str, **options: Any) -> None:
        try:
            user = account(options["email"], options["password"])
            organization = organization_of(user, options["organization"])
            secret = api_key(user, organization) if options["api_key"] else None
        except AmberError as error:
            raise CommandError(f"{error.message} {error.fields or ''}") from error
        made = {"user_id": str(user.pk), "organization_id": str(organization.pk)}
        self.stdout.write(json.dumps({**made, "api_key": secret}))


def account(email: str, password: str | None) -> User:
    found = User.objects.filter(email__iexact=email.strip()).first()
    return found or services.sign_up(email, password=password)


def organization_of(user: User, name: str | None) -> Organization:
    """The organization of that name, which the user joins or founds; else the personal one."""
    if not name:
        return Organization.objects.get(
            memberships__user=user, memberships__role=Role.OWNER, personal=True
        )
    named = Organization.objects.filter(name=name, personal=False).order_by("created_at").first()
    if named is None:
        return services.create_organization(user, name=name)
    services.join_organization(user, organization=named)
    return named


def api_key(user: User, organization: Organization) -> str:
    _, secret = services.create_api_key(user, organization=organization, name="create_account")
    return secret
