"""Django's name for the room `chats`."""

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"
