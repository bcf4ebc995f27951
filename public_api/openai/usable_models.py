"""List what a key may name as `model`: aliases, embedding models, and its user's assistants."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from accounts.principal import Principal
from assistants.models import Assistant
from providers.registry import enabled_embedding_models, listed_models
from public_api.openai.answerers import PREFIX, assistant_named, unknown_model

MAX_ASSISTANTS: Final = 1_000
"""The most assistants in the list, which has no pages in OpenAI's form."""

INSTALLATION: Final = "amber"
ORGANIZATION: Final = "organization"


@dataclass(frozen=True, slots=True)
class UsableModel:
    """A model to choose. `name` is for people; only assistants have one."""

    id: str
    created_at: datetime
    owned_by: str
    name: str = ""


def usable_models(principal: Principal) -> list[UsableModel]:
    """Return `auto`, other aliases, embedding models, then assistants, the newest first.

    Three queries; one for a key that is bound to an assistant, which is all such a key may use.
    """
    assistants = list(_assistants(principal))
    if principal.assistant_id is not None:
        return assistants
    chat = [UsableModel(m.alias, m.created_at, INSTALLATION) for m in listed_models()]
    names = {model.id for model in chat}
    embedding = [
        UsableModel(row.alias, row.created_at, INSTALLATION)
        for row in enabled_embedding_models()
        if row.alias not in names
    ]
    return [*chat, *embedding, *assistants]


def usable_model(principal: Principal, name: str) -> UsableModel:
    """Return one by its id in the list, or by an assistant's id. Raises AmberError
    (unknown_model)."""
    if name.startswith(PREFIX):
        return _of_assistant(assistant_named(principal, name))
    for model in usable_models(principal):
        if model.id == name:
            return model
    raise unknown_model(name)


def _assistants(principal: Principal) -> Iterator[UsableModel]:
    rows = Assistant.objects.visible_to(principal).order_by("-created_at")
    for row in rows.only("slug", "name", "created_at")[:MAX_ASSISTANTS]:
        yield _of_assistant(row)


def _of_assistant(row: Assistant) -> UsableModel:
    return UsableModel(f"{PREFIX}{row.slug}", row.created_at, ORGANIZATION, row.name)
