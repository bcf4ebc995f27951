"""Django's configuration of the app `chats`, which registers its built-in tools at the start."""

from importlib import import_module

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        import_module("chats.context.search_tool")
