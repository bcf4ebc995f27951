"""Django's name for the room `assistants`; at its start it says who sees which assistant."""

from uuid import UUID

from django.apps import AppConfig

from accounts.principal import Principal


class AssistantsConfig(AppConfig):
    name = "assistants"

    def ready(self) -> None:
        from accounts.registry import register_assistant_check

        register_assistant_check(_sees_assistant)


def _sees_assistant(principal: Principal, assistant_id: UUID) -> bool:
    """One query. Models can be imported only once all apps are there."""
    from assistants.models import Assistant

    return Assistant.objects.visible_to(principal).filter(pk=assistant_id).exists()
