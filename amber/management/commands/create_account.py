"""Create an account from a script; print ids, and the API key, as one line of JSON.

An account that exists is used as it is: its password is not changed. Takes no password as an
argument: those are in the shell's history, and everybody on the machine sees them in the list of
processes.
"""

import json
import sys
from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import key_services, services
from accounts.models import Organization, Role, User
from accounts.principal import Actor, ActorKind
from amber.lib.errors import AmberError


class Command(BaseCommand):
    help = "Create an account; print its user_id, organization_id and api_key as one JSON line."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--email", required=True)
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="Read a password from standard input; at a terminal, ask for it. "
            "Without one, signing in by password is not possible.",
        )
        parser.add_argument(
            "--organization",
            help="The name of an organization to join, or to create if there is none.",
        )
        parser.add_argument("--api-key", action="store_true", help="Create an API key there, too.")

    def handle(self, *_: str, **options: Any) -> None:
        try:
            password = read_password() if options["password_stdin"] else None
            user = account(options["email"], password)
            organization = organization_of(user, options["organization"])
            secret = api_key(user, organization) if options["api_key"] else None
        except AmberError as error:
            told = (f"{name}: {' '.join(said)}" for name, said in (error.fields or {}).items())
            raise CommandError("\n".join(told) or error.message) from error
        made = {"user_id": str(user.pk), "organization_id": str(organization.pk)}
        self.stdout.write(json.dumps({**made, "api_key": secret}))


def read_password() -> str:
    """Read the first line of standard input, or ask at the terminal. Raises CommandError."""
    is_typed = sys.stdin.isatty()
    password = getpass() if is_typed else sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandError("The password is empty.")
    if is_typed and getpass("Password again: ") != password:
        raise CommandError("The two passwords are different.")
    return password


def account(email: str, password: str | None) -> User:
    found = User.objects.with_email(email).first()
    return found or services.sign_up(email, password=password)


def organization_of(user: User, name: str | None) -> Organization:
    """Join or create the organization of that name; return it, or else the personal one."""
    if not name:
        return Organization.objects.get(
            memberships__user=user, memberships__role=Role.OWNER, personal=True
        )
    named = Organization.objects.filter(name=name, personal=False).order_by("created_at").first()
    if named is None:
        return services.create_organization(user, name=name)
    services.join_organization(user, organization=named, by=Actor(ActorKind.OPERATOR))
    return named


def api_key(user: User, organization: Organization) -> str:
    by = Actor(ActorKind.OPERATOR)
    _, secret = key_services.create_api_key(
        user, organization=organization, name="create_account", by=by
    )
    return secret
