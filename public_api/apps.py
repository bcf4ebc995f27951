"""Django's name for the room `public_api`."""

from django.apps import AppConfig


class PublicApiConfig(AppConfig):
    name = "public_api"
