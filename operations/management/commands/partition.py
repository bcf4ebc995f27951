"""Cut the ledger of usage up by months, while Amber runs (`operations.partitions.conversion`).

It may be killed and run again at any time; what is done is not done twice.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.template.defaultfilters import filesizeformat

from operations.partitions import conversion, upkeep
from operations.partitions.bound import ForeignIdsError, find_bound
from operations.partitions.catalog import LEDGER, is_partitioned, list_partitions, size_of


class Command(BaseCommand):
    help = "Cut the ledger of usage up into partitions by month, while Amber runs."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--plan", action="store_true", help="Say what would be done.")
        only.add_argument("--status", action="store_true", help="Say what there is.")

    def handle(self, *_: str, **options: Any) -> None:
        if options["status"]:
            return self._tell_status()
        if options["plan"]:
            return self._tell_plan()
        return self._convert()

    def _convert(self) -> None:
        try:
            counts = conversion.convert(self._tell)
        except (conversion.ConversionError, ForeignIdsError) as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            raise CommandError(f"{error}\nWhat is done stays done. Run it again.") from error
        self.stdout.write(
            f"Verified: of {counts.before:,} rows {counts.after:,} are there,"
            f" and {counts.now - counts.after:,} came meanwhile."
        )

    def _tell(self, line: str) -> None:
        """Say it at once, also to a file: whoever waits for a large table wants to know."""
        self.stdout.write(line)
        self.stdout.flush()

    def _tell_plan(self) -> None:
        if is_partitioned():
            self.stdout.write(
                "Nothing to do but to make months ahead: it is in partitions already."
            )
            return
        rows, size_bytes = size_of(LEDGER)
        self.stdout.write(f"{LEDGER}: about {rows:,} rows, {filesizeformat(size_bytes)}.")
        bound = find_bound()
        steps = [
            ("Check new rows.", bound is not None),
            (
                "Read the table once, while everything goes on.",
                bound is not None and bound.is_proven,
            ),
            (
                "Make it the first partition of a new table, under a lock for some milliseconds.",
                False,
            ),
            (f"Make partitions for this month and {upkeep.MONTHS_AHEAD} more.", False),
            ("Count all rows, to compare with before.", False),
        ]
        for number, (step, is_done) in enumerate(steps, start=1):
            self.stdout.write(f"{number}. {step}{' (Done.)' if is_done else ''}")

    def _tell_status(self) -> None:
        if not is_partitioned():
            bound = find_bound()
            begun = " A conversion was begun: run the command again." if bound else ""
            self.stdout.write(f"{LEDGER} is one table.{begun}")
            return
        for part in list_partitions():
            size = filesizeformat(part.size_bytes)
            self.stdout.write(f"{part.name}: about {part.estimated_rows:,} rows, {size}")
        if strays := upkeep.count_strays():
            raise CommandError(f"{strays:,} rows or more have no month of their own.")
