"""Django's configuration of the app `amber`, which holds templates and management commands."""

from pathlib import Path
from typing import Final

from django.apps import AppConfig, apps

from amber.languages.model_names import translate_names

_OF_ALLAUTH: Final = {"account", "socialaccount", "allauth_idp_oidc"}
"""Not all names of their tables can be translated as they come."""


class AmberConfig(AppConfig):
    name = "amber"

    def ready(self) -> None:
        translate_names([app for app in apps.get_app_configs() if is_own(app) or is_shown(app)])


def is_own(app: AppConfig) -> bool:
    """Return whether the app is one of this code, and not one that it uses."""
    return Path(app.path).parent == Path(__file__).resolve().parent.parent


def is_shown(app: AppConfig) -> bool:
    """Return whether it is an app of allauth whose tables the admin shows."""
    return app.label in _OF_ALLAUTH
