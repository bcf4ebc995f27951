"""Django's configuration of the app `memory`."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"
