"""Read paths of a chat's message tree, and append to it.

Appending needs the chat's row locked (`lock_chat`), so that parent, position and active leaf
agree.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects
from django.utils import timezone

from accounts.principal import Principal
from amber.lib.database.cached_sql import cache_sql, raw_rows
from amber.lib.database.cached_update import insert_row, update_row
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Missing
from amber.lib.ids import new_id
from assistants.models import Assistant
from chats.messages import search
from chats.messages.block_paths import mark_active_path
from chats.messages.roles import POLICIES
from chats.messages.wire import MessageWire, message_wire
from chats.models import Chat, ChatMessage, ChatOwner, Feedback, Turn
from engine.messages import SYSTEM_ROLES, MessageRole
from libraries.models import File

_COLUMNS = (
    "id, chat_id, organization_id, parent_id, opening_id, position, role, content, reasoning, "
    "assistant_id, tool_call, provider_fields, file_id, hidden, citations, model, turn_id, step, prompt_tokens, "
    "completion_tokens, total_tokens, created_at, updated_at"
)
_BRIEF = (
    "id, chat_id, organization_id, parent_id, opening_id, position, role, content, assistant_id, "
    "tool_call, provider_fields, file_id, step, created_at"
)
"""The columns that a model's context needs; the others are read when they are used."""


def _path_sql(columns: str) -> str:
    """Return the query for a path, in no order.

    The recursion carries the columns: a join after it makes the planner scan the whole table.
    """
    of_parent = ", ".join(f"m.{name}" for name in columns.split(", "))
    return f"""
WITH RECURSIVE path AS (
    SELECT {columns}, 1 AS depth, octet_length(content) AS bytes
    FROM chats_chatmessage WHERE id = %(leaf)s AND chat_id = %(chat)s
  UNION ALL
    SELECT {of_parent}, path.depth + 1, path.bytes + octet_length(m.content)
    FROM path JOIN chats_chatmessage m ON m.id = path.parent_id
    WHERE path.depth < %(messages)s AND (path.bytes < %(bytes)s OR m.position >= %(through)s)
        AND m.position >= %(from)s
)
SELECT {columns} FROM path
"""  # noqa: S608  (no value is formatted in)


_PATH_SQL = _path_sql(_COLUMNS)
_BRIEF_SQL = _path_sql(_BRIEF)
_PATH_DOWN_SQL = """
WITH RECURSIVE path AS (
    SELECT id, parent_id, position FROM chats_chatmessage WHERE id = %(leaf)s AND chat_id = %(chat)s
  UNION ALL
    SELECT m.id, m.parent_id, m.position
    FROM path JOIN chats_chatmessage m ON m.id = path.parent_id
    WHERE path.id <> %(top)s
)
SELECT id FROM path ORDER BY position
"""
_PATH_IDS_SQL = """
WITH RECURSIVE path AS (
    SELECT id, parent_id FROM chats_chatmessage WHERE id = %(leaf)s AND chat_id = %(chat)s
  UNION ALL
    SELECT m.id, m.parent_id FROM path JOIN chats_chatmessage m ON m.id = path.parent_id
)
SELECT id FROM path
"""
TIP_CHILDREN_SQL = """
ARRAY(SELECT m.id FROM chats_chatmessage m WHERE m.parent_id = chats_turn.tip_id ORDER BY m.created_at, m.id)
"""
"""Reads `Turn.tip_children`, beside a turn's row."""
_BEYOND = 2**31 - 1
"""The greatest position there can be: no message lies there."""


def path(
    chat_id: UUID,
    leaf_id: UUID | None,
    *,
    max_messages: int = 1_000_000,
    max_bytes: int = 1_000_000_000,
    from_position: int = 0,
    through: ChatMessage | None = None,
    brief: bool = False,
    author: Assistant | None = None,
) -> list[ChatMessage]:
    """Return the messages from `leaf_id` towards the root, oldest first, with assistant and file.

    It stops at `max_messages`, at `from_position`, or after the message that reaches `max_bytes` of
    text, but not before `through`, a message of the path. Costs one query over what it returns (and
    one each for assistants and files), however long the chat. `brief` rows hold what a context
    needs and take half the time. Answers of `author`, who is loaded already, need no look-up.
    """
    if leaf_id is None:
        return []
    limits = {
        "leaf": leaf_id,
        "chat": chat_id,
        "messages": max_messages,
        "bytes": max_bytes,
        "through": through.position if through else _BEYOND,
        "from": from_position,
    }
    found = raw_rows(ChatMessage, _BRIEF_SQL if brief else _PATH_SQL, limits)
    found.sort(key=attrgetter("position"))  # cheaper here: Postgres would copy the texts
    attach_related(found, author)
    return found


def path_ids(chat_id: UUID, leaf_id: UUID | None) -> set[UUID]:
    """Return the ids of the whole path to this message: one query, 1 ms per 1,000 messages."""
    with connection.cursor() as cursor:
        cursor.execute(_PATH_IDS_SQL, {"leaf": leaf_id, "chat": chat_id})
        return {row[0] for row in cursor.fetchall()}


def path_ids_down(chat_id: UUID, leaf_id: UUID | None, top: ChatMessage) -> list[UUID]:
    """Return the ids of the path from `top` down to the leaf; from the root if it is not on it.

    One query, 1 ms per 1,000 messages of it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PATH_DOWN_SQL, {"leaf": leaf_id, "chat": chat_id, "top": top.pk})
        return [row[0] for row in cursor.fetchall()]


_NEWEST_LEAF_SQL = """
WITH RECURSIVE below AS (
    SELECT id FROM chats_chatmessage WHERE id = %s
  UNION ALL
    SELECT m.id FROM below JOIN chats_chatmessage m ON m.parent_id = below.id
)
SELECT m.id FROM below JOIN chats_chatmessage m USING (id)
WHERE NOT EXISTS (SELECT FROM chats_chatmessage child WHERE child.parent_id = m.id)
ORDER BY m.created_at DESC, m.position DESC, m.id DESC LIMIT 1
"""


def newest_leaf(message: ChatMessage) -> ChatMessage:
    """Return the end of the newest branch that goes through this message.

    Two queries; reads what lies below it. Raises Missing for one that was just deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_LEAF_SQL, [message.pk])
        found = cursor.fetchone()
    leaf: ChatMessage | None = None
    if found:
        leaf = ChatMessage.objects.filter(pk=found[0]).first()
    if leaf is None:
        raise Missing
    return leaf


def attach_related(messages: Sequence[ChatMessage], author: Assistant | None = None) -> None:
    """Load assistants and files of these rows: at most two queries; of answers of `author` none.

    Texts of files are loaded only if somebody posted one: those of tools are not read, and may be
    long.
    """
    if written := _attach_author(messages, author):
        known = Assistant.objects.only("id", "name", "description", "hide_reasoning")
        authors = Prefetch("assistant", known)
        with for_whole_organization():  # also those that were closed to the person meanwhile
            prefetch_related_objects(written, authors)
    if any(m.file_id for m in messages):
        is_read = any(m.role == MessageRole.FILE and not m.tool_call for m in messages)
        files = File.objects.all() if is_read else File.objects.defer("text")
        prefetch_related_objects(list(messages), Prefetch("file", files))


def _attach_author(messages: Sequence[ChatMessage], author: Assistant | None) -> list[ChatMessage]:
    """Give the author's answers their author; return those of others."""
    written = [m for m in messages if m.assistant_id]
    if author is None:
        return written
    others = []
    field = ChatMessage._meta.get_field("assistant")
    for message in written:
        if message.assistant_id == author.pk:
            field.set_cached_value(message, author)
        else:
            others.append(message)
    return others


def opening(message: ChatMessage) -> list[ChatMessage]:
    """Return the system messages that open this message's path, oldest first."""
    return path(message.chat_id, message.opening_id)


def siblings_of(messages: Sequence[ChatMessage]) -> dict[UUID, list[UUID]]:
    """Return the siblings of each message (itself included, unless it was deleted since it was read),
    oldest first. One query.

    The siblings of a chat's root are its other roots.
    """
    if len(messages) == 1:
        return {message.pk: _siblings(message) for message in messages}
    if not messages:
        return {}
    roots = Q(parent_id__isnull=True, chat_id__in={m.chat_id for m in messages if not m.parent_id})
    parents = Q(parent_id__in={m.parent_id for m in messages if m.parent_id})
    rows = ChatMessage.objects.filter(parents | roots).order_by("created_at", "pk")
    children: dict[tuple[UUID, UUID | None], list[UUID]] = {}
    for chat_id, parent_id, pk in rows.values_list("chat_id", "parent_id", "pk"):
        children.setdefault((chat_id, parent_id), []).append(pk)
    return {m.pk: children.get((m.chat_id, m.parent_id), []) for m in messages}


def _siblings(message: ChatMessage) -> list[UUID]:
    parent_id = message.parent_id
    found = _children(parent_id=parent_id) if parent_id else _roots(chat_id=message.chat_id)
    return [pk for (pk,) in found]


@cache_sql
def _children(*, parent_id: UUID) -> QuerySet[ChatMessage, tuple[UUID]]:
    return _by_age(ChatMessage.objects.filter(parent=parent_id))


@cache_sql
def _roots(*, chat_id: UUID) -> QuerySet[ChatMessage, tuple[UUID]]:
    return _by_age(ChatMessage.objects.filter(chat=chat_id, parent__isnull=True))


def _by_age(messages: QuerySet[ChatMessage]) -> QuerySet[ChatMessage, tuple[UUID]]:
    return messages.order_by("created_at", "pk").values_list("pk")


def messages_to_wire(messages: Sequence[ChatMessage]) -> list[MessageWire]:
    """Return the wire form of stored messages, with their siblings and what their reader thinks of
    them: one query, and one if there are answers.

    Assistants and files must be loaded (`attach_related`).
    """
    siblings = siblings_of(messages)
    judged = feedback_on(messages)
    return [
        message_wire(m, sibling_ids=siblings[m.pk], feedback=judged.get(m.pk)) for m in messages
    ]


def feedback_on(messages: Iterable[ChatMessage]) -> dict[UUID, Feedback]:
    """Return the feedback on these answers by message, of the one person who can read them."""
    answers = [m.pk for m in messages if m.role == MessageRole.ASSISTANT]
    given = Feedback.objects.filter(message__in=answers) if answers else ()
    return {feedback.message_id: feedback for feedback in given}


def new_chat(principal: Principal, **fields: Any) -> Chat:
    """Return a chat of the principal that is not saved yet."""
    return Chat(
        organization_id=principal.organization_id,
        user=principal.user,
        guest_id=principal.guest_id,
        owner=owner_of(principal),
        api_key=principal.key,
        **fields,
    )


def owner_of(principal: Principal) -> ChatOwner:
    """Return in which list a chat that this principal makes appears."""
    if principal.guest_id is not None:
        return ChatOwner.GUEST
    return ChatOwner.API if principal.key else ChatOwner.USER


def lock_chat(chat_id: UUID) -> Chat:
    """Return the chat, locked until the transaction ends: always before its turn.

    Raises Missing.
    """
    found = _lock_chat(chat_id=chat_id)
    if not found:
        raise Missing
    return found[0]


@cache_sql
def _lock_chat(*, chat_id: UUID) -> QuerySet[Chat]:
    return Chat.objects.select_for_update(no_key=True).filter(pk=chat_id)


def append(
    chat: Chat, parent: ChatMessage | None, *, role: str, content: str = "", **fields: Any
) -> ChatMessage:
    """Write one message under `parent`. The caller holds the chat's lock and moves the leaf."""
    message = new_row(chat, parent, role=role, content=content, **fields)
    insert_row(message)
    return message


def new_row(
    chat: Chat, parent: ChatMessage | None, *, role: str, content: str, **fields: Any
) -> ChatMessage:
    """Return a message that is not saved yet."""
    message = ChatMessage(
        organization_id=chat.organization_id,
        chat=chat,
        parent=parent,
        position=parent.position + 1 if parent else 0,
        role=role,
        content=content,
        hidden=POLICIES[role].is_hidden,
        search=search.index_message(chat, content) if POLICIES[role].is_searched else None,
        words_version=search.WORDS_VERSION,
        **fields,
    )
    message.opening = _opening_of(message, parent)
    return message


def _opening_of(message: ChatMessage, parent: ChatMessage | None) -> ChatMessage | None:
    if parent is None:
        return message if message.role in SYSTEM_ROLES else None
    # The parent is itself the last of those that open the path: this one goes on with them.
    if message.role in SYSTEM_ROLES and parent.opening_id == parent.pk:
        return message
    return parent.opening


def append_to_turn(
    turn: Turn, chat: Chat | None, *, role: str, content: str = "", **fields: Any
) -> MessageWire:
    """Write the turn's next message at its tip, or into `output` for a stateless turn (no chat).

    Moves the tip, and the chat's active leaf if the leaf was the tip. Returns the wire form. The
    caller holds the locks of chat and turn, and saves the turn.
    """
    if chat is None:
        message = _stateless_message(turn, role=role, content=content, **fields)
        output = turn.output or {"messages": []}
        turn.output = {**output, "messages": [*output["messages"], message]}
        if kept := fields.get("provider_fields"):
            by_id = output.get("provider_fields", {})
            turn.output["provider_fields"] = {**by_id, message["id"]: kept}
        return message
    row = append(chat, turn.tip, role=role, content=content, turn=turn, **fields)
    if chat.active_leaf_id == turn.tip_id:
        move_leaf(chat, row)
    siblings = _siblings(row) if turn.tip_children is None else [*turn.tip_children, row.pk]
    turn.tip, turn.tip_children = row, []
    return message_wire(row, sibling_ids=siblings)


def move_leaf(chat: Chat, leaf: ChatMessage | None) -> None:
    """Make this the end of the active path. The caller holds the chat's lock."""
    # A leaf that only grew keeps its blocks; only a jump to another branch changes them.
    if leaf is None or leaf.parent_id != chat.active_leaf_id:
        mark_active_path(chat.pk, leaf.pk if leaf else None)
    chat.active_leaf = leaf
    # The name, too: a chat gets it with its first question, which moves the leaf.
    update_row(chat, "active_leaf", "name", "updated_at")


def _stateless_message(
    turn: Turn, *, role: str, content: str, assistant: Assistant | None = None, **fields: Any
) -> MessageWire:
    row = ChatMessage(
        id=new_id(),
        organization_id=turn.organization_id,
        role=role,
        content=content,
        assistant=assistant,
        turn=turn,
        created_at=timezone.now(),
        updated_at=timezone.now(),
        **fields,
    )
    return message_wire(row)
