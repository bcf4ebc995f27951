"""Django's configuration of the app `amber`, which holds templates and management commands."""

from django.apps import AppConfig


class AmberConfig(AppConfig):
    name = "amber"
