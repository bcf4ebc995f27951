"""Django's name for the room `accounts`."""

from importlib import import_module

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        """drf-spectacular knows the extensions that have been imported."""
        import_module("accounts.schema")
