"""Django's name for the room `providers`."""

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    name = "providers"
