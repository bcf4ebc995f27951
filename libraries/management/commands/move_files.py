"""Move files from AMBER_FILES_OLD_URL to AMBER_FILES_URL while Amber runs (`libraries.files.moving`)."""

from argparse import ArgumentParser
from typing import Any

from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError

from amber.lib.database.tenant import across_tenants
from amber.lib.storage.moving import MovingStorage
from libraries.files.moving import MoveReport, copy_files, erase_copied, is_one_place

LISTED = 20


class Command(BaseCommand):
    help = (
        "Copy all files from AMBER_FILES_OLD_URL to AMBER_FILES_URL; run it again if it breaks off. "
        "With --erase, erase from the old place what is whole in the new one."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--erase", action="store_true")

    def handle(self, *_: str, **options: Any) -> None:
        storage = storages["default"]
        if not isinstance(storage, MovingStorage):
            raise CommandError(
                "Set AMBER_FILES_OLD_URL to where the files are, AMBER_FILES_URL to where they shall "
                "be, and restart Amber: docs/operations.md."
            )
        work = erase_copied if options["erase"] else copy_files
        try:
            if is_one_place(storage.old, storage.current):
                raise CommandError(
                    "AMBER_FILES_OLD_URL and AMBER_FILES_URL lead to the same files, so there is nothing to "
                    "move. Remove AMBER_FILES_OLD_URL, or name another folder or prefix."
                )
            with across_tenants():
                report = work(storage.old, storage.current, tell=self._tell)
        except OSError as error:
            raise CommandError(f"{error} Run it again: it goes on where it stopped.") from error
        self._conclude(report, is_erasing=options["erase"])

    def _tell(self, report: MoveReport) -> None:
        said = ", ".join(f"{count:,} {what}" for what, count in report.counts.items() if count)
        self.stdout.write(f"{report.total:,} files: {said}")

    def _conclude(self, report: MoveReport, *, is_erasing: bool) -> None:
        for line in report.unwell[:LISTED]:
            self.stderr.write(line)
        if report.unwell:
            raise CommandError(
                f"{len(report.unwell):,} of {report.total:,} files are not whole in the new place. "
                "Those that are missing or damaged in the old place, too, were lost before."
            )
        self.stdout.write(
            "All of them are in the new place alone. Remove AMBER_FILES_OLD_URL and restart Amber."
            if is_erasing
            else "All of them are in the new place. Now run it with --erase, or remove "
            "AMBER_FILES_OLD_URL to keep the old copy."
        )
