"""Recognise a chat that was imported before: by its source, by who imports it, and by what was said in it.

It only writes to take the mark of an import from an expired chat, so that the chat can be imported again.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from accounts.principal import Principal
from chats.importing.converted import ConvertedChat
from chats.messages.tool_calls import StoredToolCall
from chats.models import Chat
from engine.provider_fields import storable


def source_of(principal: Principal, format_name: str, given: ConvertedChat) -> str:
    """Return the mark of where the chat comes from, and who takes it in: a bound key sees no
    other's chats."""
    bound_key = principal.key if principal.is_bound_key else None
    who = (principal.user_id, principal.guest_id, bound_key and bound_key.pk)
    said = "|".join([*map(str, who), format_name, given.source_id])
    return hashlib.sha256(said.encode()).hexdigest()


def find_known(principal: Principal, source: str, content_hash: str) -> Chat | None:
    """Return the chat that was made of the same before. One that expired makes way."""
    rows = Chat.objects.filter(
        organization_id=principal.organization_id, import_source=source, import_hash=content_hash
    )
    known = rows.select_related("assistant").first()
    if known and rows.past_expiry().update(import_source=None, import_hash=None):
        return None
    return known


def hash_content(given: ConvertedChat) -> str:
    """Hash what was said in the chat, and in which order."""
    made = hashlib.sha256()
    places: dict[Any, int] = {
        message.get("id"): place for place, message in enumerate(given.messages)
    }
    for message in ({**given.chat, "parent_id": None}, *given.messages):
        file = message.get("file")
        said = {
            **{name: value for name, value in message.items() if name not in _NOT_SAID},
            **_said_of_call(message.get("tool_call")),
            "parent": places.get(message.get("parent_id")),
            "file": file
            and [file.name, file.reference, hashlib.sha256(file.data or b"").hexdigest()],
        }
        made.update(orjson.dumps(said, default=str, option=orjson.OPT_SORT_KEYS))
    return made.hexdigest()


def _said_of_call(call: Any) -> dict[str, Any]:
    """Return of a call what is stored, whatever else an export has in it."""
    if not isinstance(call, Mapping):
        return {}
    texts = {name: call.get(name) for name in StoredToolCall.__annotations__ if name in call}
    return {
        "tool_call": {
            name: storable(value)
            for name, value in texts.items()
            if value is None or isinstance(value, str)
        }
    }


_NOT_SAID: Final = frozenset(
    {"id", "parent_id", "file", "provider_fields", "reasoning", "active_leaf_id"}
)
"""Ids, and what was not said."""
