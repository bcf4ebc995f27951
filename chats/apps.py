"""Django's configuration of the app `chats`, which registers its built-in tools at the start, and what is
done when an assistant is deleted."""

from importlib import import_module

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        import_module("chats.context.search_tool")
        import_module("chats.messages.hidden_fields")
