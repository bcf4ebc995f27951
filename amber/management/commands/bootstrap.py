"""Bring the database up to date and create what a first start needs. May be run at any time.

Migrations, providers from the environment, an administrator, a demo organization with a demo
assistant, and an API key. Refuses to bring back what people renamed or deleted as long as they
have something in its place, and to change an administrator that exists.
"""

import contextlib
import os
import secrets
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from accounts import key_services, services
from accounts.models import ApiKey, Organization, User
from accounts.principal import Actor, ActorKind
from amber import database_roles
from amber.lib.errors import AmberError
from amber.lib.secrets import sha256_hex
from amber.setup import pooler
from amber.setup.migration import MigrationBlocked, migrate
from assistants.models import Assistant
from providers.services import bootstrap_from_environment

ADMIN_EMAIL = "admin@localhost"
PASSWORD_BYTES = 12  # 96 bits, beyond guessing; 16 characters, still copied by hand
DEMO_PROMPT = "You are a friendly assistant who answers briefly and says so when unsure."


class Command(BaseCommand):
    help = "Migrate; create the first administrator, organization, assistant and API key."
    requires_system_checks = ()

    def handle(self, *_: str, **__: Any) -> None:
        if pooler.shares_sessions(settings.AMBER_DATABASES["owner"]):
            raise CommandError(pooler.MIGRATES_THROUGH_POOLER)
        try:
            migrate()
        except MigrationBlocked as blocked:
            raise CommandError(str(blocked)) from blocked
        except OperationalError as error:  # a full disk, a server that stops, no connection left
            said = str(error).strip().partition("\n")[0]
            raise CommandError(
                f"The database could not be brought up to date. Postgres says: {said}. What was done"
                " by then is kept: once this is mended, start again."
            ) from error
        self.build_wall()
        self.check_pooler()
        try:
            bootstrap_from_environment()
            admin = self.admin()
            organization = demo_organization(admin)
            demo_assistant(admin, organization)
            self.api_key(admin, organization)
        except AmberError as error:
            raise CommandError(f"{error.message} {error.fields or ''}") from error

    def build_wall(self) -> None:
        """Make the roles and give them their rights; with one role, say what that gives up."""
        try:
            warning = database_roles.arrange_installation(connection)
        except database_roles.RolesMissing as missing:
            raise CommandError(str(missing)) from None
        if warning:
            self.stderr.write(warning)

    def check_pooler(self) -> None:
        """Refuse a pooler that web and workers could not use. One that is not there yet is theirs to wait for."""
        if not settings.AMBER_PREPARED_STATEMENTS:
            return
        with contextlib.suppress(psycopg.OperationalError):
            if pooler.loses_statements(settings.AMBER_DATABASES["app"]):
                raise CommandError(pooler.LOSES_STATEMENTS)

    def admin(self) -> User:
        """Return the administrator that the environment names, else the first one, else a new
        one."""
        email = os.environ.get("AMBER_ADMIN_EMAIL", "").strip()
        admins = User.objects.filter(is_superuser=True)
        found = User.objects.with_email(email) if email else admins
        if admin := found.order_by("created_at").first():
            return admin
        given = os.environ.get("AMBER_ADMIN_PASSWORD", "")
        password = given or secrets.token_urlsafe(PASSWORD_BYTES)
        admin = services.sign_up(
            email or ADMIN_EMAIL, password=password, name="Administrator", operator=True
        )
        self.stdout.write(f"Administrator: {admin.email}")
        if not given:
            self.stdout.write(f"Password, shown only once: {password}")
        return admin

    def api_key(self, admin: User, organization: Organization) -> None:
        """Create the key that the environment names; without one, a new key if there never was
        any."""
        given = os.environ.get("AMBER_BOOTSTRAP_API_KEY", "").strip()
        keys = ApiKey.objects.filter(organization=organization, user=admin)
        if given:
            keys = ApiKey.objects.filter(sha256=sha256_hex(given))
        if keys.exists():
            return
        _, secret = key_services.create_api_key(
            admin,
            organization=organization,
            name="Bootstrap",
            secret=given,
            by=Actor(ActorKind.OPERATOR),
        )
        if not given:
            self.stdout.write(f"API key of {organization}, shown only once: {secret}")


def demo_organization(admin: User) -> Organization:
    """Return the administrator's first organization beside the personal one, or a new one."""
    joined = Organization.objects.filter(memberships__user=admin, personal=False)
    return joined.order_by("created_at").first() or services.create_organization(admin, name="Demo")


def demo_assistant(admin: User, organization: Organization) -> None:
    """Create an assistant, unless the organization has one."""
    if not Assistant.objects.filter(organization=organization).exists():
        Assistant.objects.create(
            organization=organization,
            user=admin,
            name="Demo",
            slug="demo",
            description="Answers questions with Amber's own tools.",
            prompt=DEMO_PROMPT,
            shared=True,
        )
