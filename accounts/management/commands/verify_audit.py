"""Verify the audit logs: print for each organization whether its events are intact.

Ends with 1 if one is broken, so that a monitor may run it. It changes nothing.
"""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from accounts.audit.verification import organizations_with_events, verify_chain
from accounts.models import Organization


class Command(BaseCommand):
    help = "Verify the audit log of every organization, or of one."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", type=UUID, metavar="ID", help="Only this one.")

    def handle(self, *_: str, **options: Any) -> None:
        chosen: UUID | None = options["organization"]
        if chosen is not None and not Organization.objects.filter(pk=chosen).exists():
            raise CommandError(f"There is no organization {chosen}.")
        broken_count = 0
        for organization_id in [chosen] if chosen else organizations_with_events():
            report = verify_chain(organization_id)
            events = f"{report.intact_count:,} events are intact"
            if report.fault:
                broken_count += 1
                self.stdout.write(f"{organization_id}: BROKEN. {events}, then {report.fault}")
            else:
                self.stdout.write(f"{organization_id}: {events}.")
        if broken_count:
            raise CommandError(f"{broken_count} of the audit logs are broken.")
