"""Django's configuration of the app `chats`; at its start its built-in tools register themselves."""

from importlib import import_module

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        import_module("chats.context.search_tool")
