"""Django's configuration of the app `assistants`.

When it starts, it tells `accounts.registry` who sees which assistant, which libraries those have,
which of them take guests, and what they are called.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from django.apps import AppConfig

from accounts.principal import Principal

if TYPE_CHECKING:
    from accounts.registry import PublicAssistant


class AssistantsConfig(AppConfig):
    name = "assistants"

    def ready(self) -> None:
        from accounts import registry

        registry.sees_assistant.register(_sees_assistant)
        registry.assistant_libraries.register(_library_ids)
        registry.assistant_names.register(_names)
        registry.find_public_assistants.register(_public_assistants)


def _sees_assistant(principal: Principal, assistant_id: UUID) -> bool:
    """Whether the principal sees the assistant. One query."""
    # Models can be imported only once all apps are loaded, so not with this module.
    from assistants.models import Assistant

    return Assistant.objects.visible_to(principal).filter(pk=assistant_id).exists()


def _library_ids(principal: Principal) -> Collection[UUID]:
    """Return the libraries of the assistants that the principal sees, as a subquery."""
    from assistants.models import Assistant

    seen = Assistant.objects.visible_to(principal).filter(library__isnull=False)
    ids: Collection[UUID] = seen.values_list("library_id", flat=True)
    return ids


def _names(assistant_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the assistants' names, by id. One query."""
    from assistants.models import Assistant

    return dict(Assistant.objects.filter(pk__in=assistant_ids).values_list("pk", "name"))


def _public_assistants(assistant_ids: Collection[UUID]) -> "dict[UUID, PublicAssistant]":
    """Return those of the assistants that are public, by id. One query."""
    from accounts.registry import PublicAssistant
    from assistants.models import Assistant

    rows = Assistant.objects.filter(pk__in=assistant_ids, public=True)
    columns = ("pk", "organization_id", "guest_epoch", "public_origins")
    return {
        pk: PublicAssistant(pk, organization_id, epoch, tuple(origins))
        for pk, organization_id, epoch, origins in rows.values_list(*columns)
    }
