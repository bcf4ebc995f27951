"""Django's configuration of the app `providers`."""

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    name = "providers"
