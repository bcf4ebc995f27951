"""Django's name for the room `chats`; at its start its built-in tools register themselves."""

from importlib import import_module

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        import_module("chats.search_tool")
