"""Django's configuration of the app `public_api`, whose webhooks hear of turns."""

from importlib import import_module

from django.apps import AppConfig, apps


class PublicApiConfig(AppConfig):
    name = "public_api"
    verbose_name = "Public API"

    def ready(self) -> None:
        # Models can be imported only once all apps are loaded.
        from chats.turns import listeners
        from public_api.webhooks.outbox import note_turn

        listeners.register(note_turn)
        if apps.is_installed("corsheaders"):  # workers have no pages, and no middleware to ask
            import_module("public_api.web_start")
