"""Build the message tree of an imported chat: unsaved rows, made of what an export says.

It refuses what does not make a tree, and messages of tools that do not name their call.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from amber.lib.errors import Invalid
from chats.messages.roles import CALL_ROLES
from chats.messages.tool_calls import (
    StoredToolCall,
    are_arguments_too_long,
    read_call,
    store_call,
)
from chats.messages.transcript import new_row
from chats.models import Chat, ChatMessage
from engine.messages import MessageRole
from engine.provider_fields import (
    fitting_reasoning,
    read_stored_form,
    reasoning_in,
    storable,
)
from libraries.models import File


def build_tree(
    chat: Chat,
    messages: Sequence[Mapping[str, Any]],
    *,
    assistant_ids: Collection[UUID] = (),
    files: Mapping[int, File] = MappingProxyType({}),
) -> dict[str, ChatMessage]:
    """Return unsaved rows by their old ids (or places), parents before children.

    A message without `parent_id` follows the one before it. A message keeps its assistant if that
    is one of `assistant_ids`; `files` are by the places of their messages. Raises Invalid for an id
    that is used twice, a parent that does not come before, and a tool message without its call.
    """
    rows: dict[str, ChatMessage] = {}
    before: ChatMessage | None = None
    for place, given in enumerate(messages):
        name = given.get("id") or f"#{place}"
        parent = _imported_parent(given, before, rows, place)
        if name in rows:
            raise Invalid(fields={f"messages.{place}.id": ["This id is used twice."]})
        call = given.get("tool_call")
        # A file that nobody posted has the call that made it.
        has_call = given["role"] in CALL_ROLES or (call and given["role"] == MessageRole.FILE)
        call = _imported_call(call, place) if has_call else None
        assistant_id = given.get("assistant_id")
        before = rows[name] = new_row(
            chat,
            parent,
            role=given["role"],
            content=given["content"],
            tool_call=call,
            assistant_id=assistant_id if assistant_id in assistant_ids else None,
            model=given.get("model") or "",
            file=files.get(place),
            provider_fields=read_stored_form(given.get("provider_fields") or {}),
            reasoning=_reasoning(given),
        )
    return rows


def _imported_parent(
    given: Mapping[str, Any],
    before: ChatMessage | None,
    rows: Mapping[str, ChatMessage],
    place: int,
) -> ChatMessage | None:
    if "parent_id" not in given:
        return before
    wanted = given["parent_id"]
    if wanted is not None and wanted not in rows:
        said = "The parent must come before its children."
        raise Invalid(fields={f"messages.{place}.parent_id": [said]})
    return rows[wanted] if wanted is not None else None


def _imported_call(call: Any, place: int) -> StoredToolCall:
    if not isinstance(call, dict) or not all(
        isinstance(call.get(name), str) for name in ("id", "name", "arguments")
    ):
        said = "A tool message needs `id`, `name` and `arguments`, all strings."
        raise Invalid(fields={f"messages.{place}.tool_call": [said]})
    reply_id = call.get("reply_id")
    if are_arguments_too_long(call):
        call = {**call, "arguments": "{}"}
    known = {name: storable(call[name]) for name in ("id", "name", "arguments")}
    return store_call(read_call(known), storable(reply_id) if isinstance(reply_id, str) else None)


def _reasoning(given: Mapping[str, Any]) -> str:
    """Return what was thought before an answer. Exports of old have it in the fields alone."""
    said = given.get("thoughts") or given.get("reasoning")
    return fitting_reasoning(said) if said else reasoning_in(given.get("provider_fields"))
