"""Django's configuration of the app `tools`; when it starts, the built-in tools are registered."""

from importlib import import_module

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "tools"

    def ready(self) -> None:
        import_module("tools.builtin")
