"""Take in the chats that somebody exported elsewhere, for one person (docs/importing.md).

    manage.py import_chats conversations.zip --email alice@example.org

Each chat is a transaction of its own, so an import that is broken off goes on where it was when it
is started again: what was taken in is found, and not taken twice.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from accounts.models import Membership, User
from accounts.principal import Principal
from accounts.tenancy.access import get_visible
from amber.lib.database.tenant import as_tenant
from amber.lib.errors import AmberError
from amber.lib.rest.api import as_amber_error
from assistants.models import Assistant
from chats.importing.parts import Parts, open_path
from chats.importing.services import (
    ImportOptions,
    conversations_of,
    import_conversation,
    refused_chat,
)
from chats.messages.wire import ImportedChatWire

MAX_TEXT_BYTES: Final = 200_000_000
MAX_TOTAL_BYTES: Final = 20_000_000_000


class Command(BaseCommand):
    help = "Import chats from exports of Amber, ChatGPT, Open WebUI, LibreChat, OpenAI's messages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, help="JSON files, zips or folders.")
        parser.add_argument("--email", required=True, help="Whose chats they become.")
        parser.add_argument("--organization", help="Its slug, for members of several.")
        parser.add_argument("--assistant", type=UUID, help="The assistant of every chat.")
        parser.add_argument("--again", action="store_true", help="Take in copies, too.")
        parser.add_argument(
            "--max-bytes",
            type=int,
            default=MAX_TEXT_BYTES,
            help=f"The longest text that is read, default {MAX_TEXT_BYTES:,}; it may take fifteen "
            "times as much memory.",
        )

    def handle(self, *_: str, **options: Any) -> None:
        principal = _principal(options["email"], options["organization"])
        with as_tenant(principal.tenant):
            try:
                chosen = _options(principal, options["assistant"], options["again"])
                for path in options["paths"]:
                    parts = open_path(path, total_bytes=MAX_TOTAL_BYTES)
                    self._import(principal, parts, chosen, options["max_bytes"])
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}") from error
            except AmberError as error:
                raise CommandError(error.message) from error

    def _import(
        self, principal: Principal, parts: Parts, options: ImportOptions, at_most_bytes: int
    ) -> None:
        new = known = refused = 0
        for conversation in conversations_of(parts, at_most_bytes=at_most_bytes):
            try:
                made = import_conversation(principal, parts, conversation, options)
            except (AmberError, ValidationError) as raised:
                refused += 1
                told = refused_chat(conversation, as_amber_error(raised))
                self.stderr.write(f"refused: {told['name'] or '(no name)'}: {told['reason']}")
                continue
            new, known = new + made["is_new"], known + (not made["is_new"])
            self._tell(made)
        self.stdout.write(f"{new:,} new, {known:,} already here, {refused:,} refused")

    def _tell(self, made: ImportedChatWire) -> None:
        """Tell what the chat lost; never what was said in it."""
        for lost in made["not_taken"]:
            self.stdout.write(
                f"{made['chat']['id']}: not taken: {lost['kind']} ({lost['count']:,}). {lost['reason']}"
            )
        if made["is_new"] and made["notice"]:
            self.stdout.write(f"{made['chat']['id']}: {made['notice']}")


def _principal(email: str, slug: str | None) -> Principal:
    rows = Membership.objects.filter(user__in=User.objects.with_email(email), user__is_active=True)
    if slug:
        rows = rows.filter(organization__slug=slug)
    found = list(rows.select_related("user")[:2])
    if not found:
        raise CommandError(f"There is no member {email}.")
    if len(found) > 1:
        raise CommandError(f"{email} is in several organizations: name one with --organization.")
    (member,) = found
    return Principal(member.organization_id, member.user, role=member.role)


def _options(principal: Principal, assistant_id: UUID | None, again: bool) -> ImportOptions:
    if assistant_id is None:
        return ImportOptions(is_copied=again)
    return ImportOptions(get_visible(Assistant, principal, assistant_id), True, again)
