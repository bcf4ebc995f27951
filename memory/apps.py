"""Django's name for the room `memory`."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"
