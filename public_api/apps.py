"""Django's name for the room `public_api`."""

from importlib import import_module

from django.apps import AppConfig, apps

from amber.lib.api import speak_form
from public_api.openai_errors import PREFIX, openai_form


class PublicApiConfig(AppConfig):
    name = "public_api"

    def ready(self) -> None:
        speak_form(PREFIX, openai_form)
        import_module("public_api.webhook_start")
        # Workers have no middleware to ask.
        if apps.is_installed("corsheaders"):
            from corsheaders.signals import check_request_enabled

            cors = import_module("public_api.cors")
            check_request_enabled.connect(cors.allow_registered_origin, dispatch_uid="public_api")
            check_request_enabled.connect(cors.allow_guests_page, dispatch_uid="guests")
