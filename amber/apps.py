"""Django's name for the composition root: templates and management commands live here."""

from importlib import import_module

from django.apps import AppConfig


class AmberConfig(AppConfig):
    name = "amber"

    def ready(self) -> None:
        """Shared tasks ring with our Celery app in every process, not only in workers."""
        import_module("amber.celery")
