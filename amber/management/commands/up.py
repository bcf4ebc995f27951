"""List `manage.py up` among Django's commands; manage.py runs it without Django (`amber.up`)."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from amber import up


class Command(BaseCommand):
    help = "Run everything on this machine: Postgres, Redis, web and workers, until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "role", nargs="*", choices=[[], *up.ROLES], help="Run only these roles."
        )

    def handle(self, *_: str, **options: Any) -> None:
        sys.exit(up.main(options["role"]))
