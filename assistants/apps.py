"""Django's name for the room `assistants`."""

from django.apps import AppConfig


class AssistantsConfig(AppConfig):
    name = "assistants"
