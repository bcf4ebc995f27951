"""Django's configuration of the app `providers`, which tells `accounts.registry` what a new organization may
use."""

from uuid import UUID

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    name = "providers"

    def ready(self) -> None:
        from accounts.registry import register_newcomer

        register_newcomer(_give_first_budget)


def _give_first_budget(organization_id: UUID) -> None:
    # Models can be imported only once all apps are loaded, so not with this module.
    from providers.budgets.services import give_first_budget

    give_first_budget(organization_id)
