"""Django's configuration of the app `providers`, which registers at the start what a new organization may use."""

from importlib import import_module

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    name = "providers"

    def ready(self) -> None:
        import_module("providers.budgets.newcomers")
