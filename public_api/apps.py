"""Django's configuration of the app `public_api`."""

from importlib import import_module

from django.apps import AppConfig, apps


class PublicApiConfig(AppConfig):
    name = "public_api"
    verbose_name = "Public API"

    def ready(self) -> None:
        import_module("public_api.webhooks.start")
        if apps.is_installed("corsheaders"):  # workers have no pages, and no middleware to ask
            import_module("public_api.web_start")
