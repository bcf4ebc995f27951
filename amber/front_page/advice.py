"""Say what an operator should do next: a sentence each, and a link to where it is done.

What matters most comes first. One query, whatever there is to say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Exists, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from accounts.models import User
from amber.lib.database.tenant import SYSTEM
from assistants.models import Assistant
from operations.models import BackupRecord
from providers.models import OFFLINE_URL, EmbeddingModel, LanguageModel, Provider

BACKUP_DAYS: Final = 7
"""After so long without a backup the page asks for one."""
FIRST_ADMIN: Final = "admin@localhost"
"""The address of the first administrator where nobody named another: no mail reaches it."""
_GUESSABLE: Final = frozenset(
    {"amber", "postgres", "password", "secret", "changeme", "change-me", "admin"}
)
_LOCAL: Final = frozenset({None, "localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Advice:
    """`right` is what somebody needs who can follow it; without the right it is not shown."""

    text: str
    link: str
    link_text: str
    right: str = ""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the database tells of the installation."""

    has_provider: bool
    has_model: bool
    has_default_model: bool
    has_default_embedding: bool
    has_assistant: bool
    first_admin_id: Any
    backup_at: datetime | None


def next_steps(request: HttpRequest) -> list[Advice]:
    """Return what the person who asks can do. One query."""
    facts = _read_facts(request.user.pk)
    steps = [*_to_begin(facts), *_to_be_safe(facts), *_to_be_reached()]
    user: Any = request.user
    return [step for step in steps if not step.right or user.has_perm(step.right)]


def _read_facts(user_id: Any) -> _Facts:
    models = LanguageModel.objects.filter(enabled=True)
    first_admins = User.objects.filter(email=FIRST_ADMIN, is_superuser=True, is_active=True)
    row = (
        User.objects.filter(pk=user_id)
        .annotate(
            has_provider=Exists(Provider.objects.exclude(base_url=OFFLINE_URL)),
            has_model=Exists(models.exclude(provider__base_url=OFFLINE_URL)),
            has_default_model=Exists(models.filter(default=True)),
            has_default_embedding=Exists(EmbeddingModel.objects.filter(enabled=True, default=True)),
            has_assistant=Exists(Assistant.objects.all()),
            first_admin_id=Subquery(first_admins.values("pk")[:1]),
            backup_at=Subquery(
                BackupRecord.objects.order_by("-created_at").values("created_at")[:1]
            ),
        )
        .values(*_Facts.__dataclass_fields__)
        .get()
    )
    return _Facts(**row)


def _to_begin(facts: _Facts) -> Iterator[Advice]:
    """Yield what is missing before people can ask a model of theirs."""
    if not facts.has_provider:
        yield Advice(
            _(
                "No provider is set up. Until you add one, the built-in model answers, which only quotes"
                " what it finds."
            ),
            reverse("admin:providers_provider_add"),
            _("Add a provider"),
            "providers.add_provider",
        )
    elif not facts.has_model:
        yield Advice(
            _("Your provider has no enabled model yet, so nobody can choose one."),
            reverse("admin:providers_provider_changelist"),
            _("Choose models"),
            "providers.change_provider",
        )
    if not facts.has_default_model:
        yield Advice(
            _("No default model is set, so assistants without a model of their own cannot answer."),
            reverse("admin:providers_languagemodel_changelist"),
            _("Make a model the default"),
            "providers.change_languagemodel",
        )
    if not facts.has_default_embedding:
        yield Advice(
            _("No default embedding model is set, so new libraries have to name one."),
            reverse("admin:providers_embeddingmodel_changelist"),
            _("Make one the default"),
            "providers.change_embeddingmodel",
        )
    if not facts.has_assistant:
        yield Advice(
            _("There is no assistant that people can talk to yet."),
            reverse("admin:assistants_assistant_add"),
            _("Create an assistant"),
            "assistants.add_assistant",
        )


def _to_be_safe(facts: _Facts) -> Iterator[Advice]:
    """Yield what could lose data, or let in whom nobody meant to."""
    yield from _about_backups(facts.backup_at)
    databases = settings.AMBER_DATABASES.values()
    if any(_is_guessable(each) for each in databases):
        yield Advice(
            _("The database password is easy to guess."),
            docs_link("settings", "where-things-are"),
            _("Where its password is set"),
            "accounts.change_user",
        )
    if SYSTEM not in settings.DATABASES:
        yield Advice(
            _(
                "Amber has a single login to Postgres, so Postgres does not keep tenants apart itself."
            ),
            docs_link("operations", "your-own-postgres"),
            _("Set up three database logins"),
            "accounts.change_user",
        )
    if facts.first_admin_id is not None:
        yield Advice(
            _("The first administrator is still %(address)s, which is not a real email address.")
            % {"address": FIRST_ADMIN},
            reverse("admin:accounts_user_change", args=[facts.first_admin_id]),
            _("Change the account's address"),
            "accounts.change_user",
        )
    if settings.DEBUG:
        yield Advice(
            _("AMBER_DEBUG is on: error pages show Amber's internals to everyone."),
            docs_link("settings", "logs-debugging-and-traces"),
            _("Turn it off"),
            "accounts.change_user",
        )
    if settings.AMBER_OPEN_SIGNUP:
        yield Advice(
            _(
                "Sign-up is open: anyone who finds this address can create an account and use your models."
            ),
            docs_link("settings", "people"),
            _("Close sign-up, or see who joined"),
            "accounts.view_user",
        )


def _about_backups(backup_at: datetime | None) -> Iterator[Advice]:
    if backup_at is None:
        text = _("No backup has been made yet.")
    elif timezone.now() - backup_at > timedelta(days=BACKUP_DAYS):
        text = _("The last backup was made %(ago)s ago.") % {"ago": timesince(backup_at, depth=1)}
    else:
        return
    link = docs_link("operations", "backup-and-restore")
    yield Advice(text, link, _("How to make one"), "accounts.change_user")


def _is_guessable(database: Mapping[str, Any]) -> bool:
    """Whether the password of a login over the network is a usual one, or the login's own name."""
    password = str(database["PASSWORD"] or "").lower()
    return password in _GUESSABLE or (bool(password) and password == str(database["USER"]).lower())


def _to_be_reached() -> Iterator[Advice]:
    """Yield what keeps people from Amber, or others from listening in."""
    if settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        yield Advice(
            _(
                "Amber sends no email, so people cannot reset a forgotten password or be invited by email."
            ),
            docs_link("operations", "mail"),
            _("Name a mail server"),
            "accounts.change_user",
        )
    public = urlsplit(settings.AMBER_PUBLIC_URL)
    if public.scheme == "http" and public.hostname not in _LOCAL:
        yield Advice(
            _("People reach Amber without TLS, so passwords and questions are sent unencrypted."),
            docs_link("operations", "in-containers-docker-compose"),
            _("Put a TLS proxy in front"),
            "accounts.change_user",
        )


def docs_link(page: str, heading: str) -> str:
    """Return the address of a heading in the docs that are served with Amber."""
    return f"/docs/{page}/#{heading}"
