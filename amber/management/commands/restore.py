"""Replace database and files by those of a backup, while Amber does not run (`amber.backups`)."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from amber.backups.programs import BackupError
from amber.backups.restore import RestoreResult, restore_backup


class Command(BaseCommand):
    help = "Restore a backup. It replaces everything that is in the database and the files now."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dump", type=Path)
        parser.add_argument("files", type=Path)

    def handle(self, *_: str, **options: Any) -> None:
        try:
            restored = restore_backup(options["dump"], options["files"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self._report(restored)
        if restored.missing_files:
            some = ", ".join(restored.missing_files[:10])
            raise CommandError(f"{len(restored.missing_files)} files are missing: {some}")

    def _report(self, restored: RestoreResult) -> None:
        self.stdout.write(f"Restored: {restored.rows:,} rows, {restored.files:,} files.")
        if restored.waiting_migrations:
            self.stdout.write(
                f"The next start applies {restored.waiting_migrations} migrations: "
                "the backup was made by an older Amber."
            )
        if restored.locked_keys:
            self.stdout.write(
                "AMBER_SECRET_KEYS are not those of the backup: the stored keys of "
                f"{', '.join(restored.locked_keys)} cannot be read. Append the old ones, "
                "separated by commas."
            )
        if restored.replaced_files:
            self.stdout.write(f"The previous files are kept in {restored.replaced_files}")
