"""Django's configuration of the app `operations`, which says what closing an organization does."""

from uuid import UUID

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "operations"

    def ready(self) -> None:
        from accounts import registry

        registry.hide_organization.register(_hide_organization)


def _hide_organization(organization_id: UUID) -> None:
    """Hide all that the organization has."""
    # Models can be imported only once all apps are loaded.
    from operations.privacy.erasure_services import hide_organization

    hide_organization(organization_id)
