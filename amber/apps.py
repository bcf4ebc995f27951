"""Django's configuration of the app `amber`, which holds templates and management commands."""

from pathlib import Path

from django.apps import AppConfig, apps

from amber.languages.model_names import translate_names


class AmberConfig(AppConfig):
    name = "amber"

    def ready(self) -> None:
        translate_names([app for app in apps.get_app_configs() if is_own(app)])


def is_own(app: AppConfig) -> bool:
    """Return whether the app is one of this code, and not one that it uses."""
    return Path(app.path).parent == Path(__file__).resolve().parent.parent
