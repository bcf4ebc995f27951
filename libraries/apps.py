"""Django's configuration of the app `libraries`."""

from django.apps import AppConfig


class LibrariesConfig(AppConfig):
    name = "libraries"
