"""Django's name for the room `accounts`."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
