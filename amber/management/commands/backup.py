"""Make a backup of database and files, while Amber runs or not (`amber.backups`)."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError

from amber.backups.backup import make_backup
from amber.backups.programs import BackupError
from operations.models import BackupRecord


class Command(BaseCommand):
    help = "Back up database and files into a folder (default: backups in AMBER_VAR_DIR)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", nargs="?", type=Path)
        parser.add_argument(
            "--without-files",
            action="store_true",
            help="Back up the database alone, as files are backed up by other means.",
        )
        parser.add_argument(
            "--elsewhere",
            action="store_true",
            help="Make none: note that one was made by other means, such as a snapshot.",
        )

    def handle(self, *_: str, **options: Any) -> None:
        if options["elsewhere"]:
            BackupRecord.objects.create(elsewhere=True)
            self.stdout.write("Noted: a backup was made elsewhere.")
            return
        self._make(options)
        try:
            BackupRecord.objects.create()
        except ProgrammingError:
            # Before an upgrade migrates, its table is not there yet; the backup is what counts.
            self.stderr.write("The admin will not know of this backup: migrate first for that.")

    def _make(self, options: dict[str, Any]) -> None:
        try:
            made = make_backup(
                options["folder"] or settings.AMBER_VAR_DIR / "backups",
                with_files=not options["without_files"],
            )
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Database, {made.rows:,} rows: {made.dump}")
        self.stdout.write(f"Files: {made.files}")
        if made.missing_files:
            self.stdout.write(f"{made.missing_files} files that the database names do not exist.")
        self.stdout.write("AMBER_SECRET_KEYS are in neither. Keep them safe, in another place.")
