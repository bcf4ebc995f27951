"""Stub while models are on their way."""

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    def handle(self, *_: str, **__: object) -> None:
        call_command("migrate", verbosity=0)
