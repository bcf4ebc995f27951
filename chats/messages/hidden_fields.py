"""Seal the fields in which a model's thoughts are readable, where its assistant hides them.

Whoever holds a chat elsewhere (an export, a client of `/v1` with tools of its own) brings them back as
they were, and only this installation can open them, for the same organization. With the assistant
the thoughts are deleted, since nothing says any more that nobody may read them.
"""

from typing import Any, Final
from uuid import UUID

import orjson
from django.db.models import F, Func, JSONField
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from amber.lib.secrets import DecryptError, decrypt, encrypt
from assistants.models import Assistant
from chats.models import ChatMessage, Turn
from engine.provider_fields import StoredFields, stored_form

SEALED: Final = "amber_sealed"
"""The field of a message that holds its other fields."""

_PLACE: Final = "chats_chatmessage.provider_fields"


def seal_fields(stored: StoredFields, organization_id: UUID) -> StoredFields | None:
    """Return the stored form with the fields of its message sealed; a call's say nothing."""
    message = stored.get("message", {})
    sealed = {}
    if message:
        text = orjson.dumps(message).decode()
        sealed[SEALED] = encrypt(text, table=_PLACE, pk="", organization_id=organization_id)
    return stored_form(stored["sender"], message=sealed, call=stored.get("call", {}))


def open_fields(stored: StoredFields | None, organization_id: UUID) -> StoredFields | None:
    """Return the stored form as it was before it was sealed; without what cannot be opened."""
    if stored is None or SEALED not in stored.get("message", {}):
        return stored
    fields: dict[str, Any] = {}
    sealed = stored["message"][SEALED]
    try:
        if isinstance(sealed, str):
            opened = decrypt(sealed, table=_PLACE, pk="", organization_id=organization_id)
            fields = orjson.loads(opened)
    except DecryptError:  # of another installation or organization: the model does without
        pass
    return stored_form(stored["sender"], message=fields, call=stored.get("call", {}))


class _WithoutThoughts(Func):
    """A row's `provider_fields` without those of the message; calls keep theirs."""

    template = "(%(expressions)s) - 'message'"
    output_field = JSONField()


class _OutputWithoutThoughts(Func):
    """A stateless turn's output, in which each message's `provider_fields` are so."""

    template = (
        "jsonb_set(%(expressions)s, '{provider_fields}', (SELECT COALESCE("
        "jsonb_object_agg(key, value - 'message'), '{}') FROM jsonb_each(%(expressions)s"
        " -> 'provider_fields')))"
    )
    output_field = JSONField()


@receiver(pre_delete, sender=Assistant)
def forget_hidden_thoughts(instance: Assistant, **_: Any) -> None:
    """Delete what an assistant thought and hides, before its messages let go of it."""
    if not instance.hide_reasoning:
        return
    written = ChatMessage.objects.filter(assistant=instance)
    written.exclude(reasoning="").update(reasoning="")
    written.filter(provider_fields__has_key="message").update(
        provider_fields=_WithoutThoughts(F("provider_fields"))
    )
    Turn.objects.filter(assistant=instance, output__has_key="provider_fields").update(
        output=_OutputWithoutThoughts(F("output"))
    )
