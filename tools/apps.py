"""Django's name for the room `tools`."""

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "tools"
