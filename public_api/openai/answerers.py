"""Resolve who answers and who asks: the `model`, `user` and chat id of a request.

    assistant:<slug or id>   an assistant that the key's user may use
    <alias>                  a bare model: no prompt, no tools of Amber's

A key bound to an assistant may name that one only. Absent, foreign and not for this key are the
same.
"""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from accounts.principal import Principal
from amber.lib.database.tenant import act_as
from amber.lib.errors import AmberError, Missing
from assistants.models import Assistant
from assistants.slugs import looks_like_id
from chats.context.call_options import CallOptions
from chats.messages.transcript import owner_of
from chats.models import Chat
from providers.models import EmbeddingModel
from providers.registry import enabled_embedding_models, is_known_alias

PREFIX: Final = "assistant:"
NEW_CHAT: Final = "new"


@dataclass(frozen=True, slots=True)
class Answerer:
    """An assistant, or a model by its alias. `name` is how the client called it."""

    name: str
    assistant: Assistant | None = None

    def options(self, options: CallOptions) -> CallOptions:
        """Return what the turn is asked, with who answers it."""
        if self.assistant is not None:
            return options
        return replace(options, model=self.name, is_bare=True)


def answerer_named(principal: Principal, name: str) -> Answerer:
    """Find who answers by that name. One query. Raises AmberError (unknown_model)."""
    if name.startswith(PREFIX):
        return Answerer(name, assistant_named(principal, name))
    if principal.assistant_id is None and is_known_alias(name):
        return Answerer(name)
    raise unknown_model(name)


def assistant_named(principal: Principal, name: str) -> Assistant:
    """Find an assistant by `name`, prefix included. One query. Raises AmberError
    (unknown_model)."""
    wanted = name.removeprefix(PREFIX)
    field = "pk" if looks_like_id(wanted) else "slug"
    found: Assistant | None = (
        Assistant.objects.visible_to(principal).filter(**{field: wanted}).first()
    )
    if found is None:
        raise unknown_model(name)
    return found


def embedding_model_named(name: str) -> EmbeddingModel:
    """Find an embedding model. One query. Raises AmberError (unknown_model)."""
    found = enabled_embedding_models().filter(alias=name).first()
    if found is None:
        raise unknown_model(name)
    return found


def unknown_model(name: str) -> AmberError:
    said = f"The model `{name}` does not exist, or this key may not use it."
    return AmberError(said, code="unknown_model", fields={"model": [said]})


def asking_as(principal: Principal, user: str) -> Principal:
    """Return the guest of that name, and act for them from here on; without a name the key's user.

    Guests of one user's keys are nobody else's, so the name carries the user.
    """
    if not user:
        return principal
    guest = replace(principal, guest_id=f"{principal.user_id}:{user}")
    act_as(guest.tenant)
    return guest


def stored_chat(caller: Principal, chat_id: str) -> Chat | None:
    """Return this caller's chat that keys began; None to begin one. One query. Raises Missing."""
    if chat_id == NEW_CHAT:
        return None
    found: Chat | None = None
    if looks_like_id(chat_id):
        mine = Chat.objects.visible_to(caller).filter(owner=owner_of(caller))
        found = mine.filter(pk=UUID(chat_id)).first()
    if found is None:
        said = "This chat does not exist, or you have no access to it."
        raise Missing(said, fields={"metadata.chat_id": [said]})
    return found
