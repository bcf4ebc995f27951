"""Django's name for the room `libraries`."""

from django.apps import AppConfig


class LibrariesConfig(AppConfig):
    name = "libraries"
