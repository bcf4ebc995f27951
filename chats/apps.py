"""Django's name for the room `chats`; at its start its built-in tools register themselves, and it says
what closing an organization does."""

from importlib import import_module
from uuid import UUID

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        from accounts.registry import register_organization_closer

        import_module("chats.context.search_tool")
        register_organization_closer(_hide_organization)


def _hide_organization(organization_id: UUID) -> None:
    """Models can be imported only once all apps are there."""
    from operations.privacy.erasure_services import hide_organization

    hide_organization(organization_id)
