"""Django's name for the room `tools`; at its start the built-in tools register themselves."""

from importlib import import_module

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "tools"

    def ready(self) -> None:
        import_module("tools.builtin")
