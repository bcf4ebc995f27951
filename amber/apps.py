"""Django's name for the composition root: templates and management commands live here."""

from django.apps import AppConfig


class AmberConfig(AppConfig):
    name = "amber"
