"""Django's name for the room `accounts`."""

from importlib import import_module

from django.apps import AppConfig, apps


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        """drf-spectacular knows the extensions that have been imported; workers do without."""
        if apps.is_installed("drf_spectacular"):
            import_module("accounts.schema")
