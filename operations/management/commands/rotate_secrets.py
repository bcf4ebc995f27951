"""Encrypt every stored secret with the first key of AMBER_SECRET_KEYS (`operations.maintenance.secret_rotation`).

Ends with 1 while a secret needs another key, so that a script does not drop that key; and, before anything is
changed, while a worker runs that could not read what is written: mails and documents would fail there for good.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from amber.lib.database.tenant import across_tenants
from operations.maintenance.heartbeats import workers_of_other_keys
from operations.maintenance.secret_rotation import rotate_secrets


class Command(BaseCommand):
    help = "Encrypt every stored secret with the first key of AMBER_SECRET_KEYS, while Amber runs."
    requires_system_checks = ()

    def handle(self, *_: str, **options: Any) -> None:
        if others := workers_of_other_keys():
            raise CommandError(
                f"These workers do not use the first key yet: {', '.join(others)}. Restart every process"
                " with these AMBER_SECRET_KEYS. Then run this again; a worker counts until 20 seconds after"
                " its end."
            )
        with across_tenants():
            report = rotate_secrets()
        self.stdout.write(
            f"{report.rotated_count:,} secrets were encrypted again,"
            f" {report.current_count:,} had the first key already."
        )
        for line in report.unreadable:
            self.stderr.write(line)
        if report.unreadable:
            raise CommandError(
                f"{len(report.unreadable):,} secrets cannot be decrypted. Add the key that encrypted them"
                " to the end of AMBER_SECRET_KEYS, or enter these secrets again. Then run this again."
            )
        if report.rotated_count:
            self.stdout.write(
                "Run this once more before you drop the old key: somebody may have saved a secret meanwhile."
            )
        else:
            self.stdout.write("Nothing needs another key. You may drop the others.")
