"""Tell a person's other pages that their chats have changed, over a Redis channel for each person.

Changes hold ids, never texts: pages that get them ask REST. Nothing is kept. A page that connects gets `ready`,
and then reads its lists again, so a change that Redis loses only delays the page. Guests have no channel. After
a change the person reads from the primary, since a replica may still have what was before
(`amber.lib.database.replica`); so does the owner of a key that asked without a chat.
"""

from functools import partial
from typing import Annotated, Final, Literal, TypedDict
from uuid import UUID

import orjson
import redis
import structlog
from django.db import transaction

from amber.lib import redis as amber_redis
from amber.lib.database.replica import note_write
from amber.lib.database.tenant import Tenant
from amber.lib.wire_fields import Id, write_id
from chats.models import STATUS_CHOICES, Chat, Turn
from engine.events import TurnStatus

logger = structlog.get_logger(__name__)

ChangeName = Literal["ready", "chats.changed", "chat.changed", "chat.deleted"]


class ChangeWire(TypedDict):
    """That a chat of yours changed: read it again. It has no texts."""

    event: Annotated[
        ChangeName,
        "`ready`: from here on you are told; read your lists anew. `chats.changed`: many chats did.",
    ]
    chat_id: Id | None
    turn_id: Annotated[Id | None, "The turn that began, waits or ended."]
    status: Annotated[str, STATUS_CHOICES] | None


def write_change(
    event: ChangeName,
    chat_id: UUID | None = None,
    turn_id: UUID | None = None,
    status: str | None = None,
) -> bytes:
    change: ChangeWire = {
        "event": event,
        "chat_id": write_id(chat_id),
        "turn_id": write_id(turn_id),
        "status": status,
    }
    return orjson.dumps(change)


READY: Final = write_change("ready")
_STATUSES: Final = {"turn.started": TurnStatus.RUNNING, "turn.waiting": TurnStatus.WAITING} | {
    f"turn.{status}": status for status in ("completed", "incomplete", "failed", "cancelled")
}
STATUS_EVENTS: Final = frozenset(_STATUSES)
"""Events of a turn after which lists and usage are other than before."""


def changes_channel(organization_id: UUID, user_id: UUID) -> bytes:
    return amber_redis.key("changes", organization_id, user_id)


def person_of(row: Chat | Turn) -> Tenant | None:
    """Return the person whose chat or turn this is; None for a guest's."""
    if row.guest_id is not None or row.user_id is None:
        return None
    return Tenant(row.organization_id, row.user_id)


def reader_of(turn: Turn) -> Tenant | None:
    """Return who may look at lists and usage after the turn; None for visitors of a page, who have neither.

    For guests of a key, and for turns without a chat, it is the key's user.
    """
    return Tenant(turn.organization_id, turn.user_id) if turn.user_id else None


def channel_of(person: Tenant) -> bytes:
    assert person.organization_id is not None and person.user_id is not None
    return changes_channel(person.organization_id, person.user_id)


def change_of_turn(name: str, *, chat_id: UUID | None, turn_id: UUID) -> bytes | None:
    """Return what this event of a turn tells those who do not follow it; None for most."""
    status = _STATUSES.get(name)
    if status is None or chat_id is None:
        return None
    return write_change("chat.changed", chat_id, turn_id, status)


def tell_of_chat(chat: Chat, event: ChangeName = "chat.changed") -> None:
    """Tell the chat's person after commit that it changed."""
    if (person := person_of(chat)) is not None:
        transaction.on_commit(partial(_tell, person, write_change(event, chat.pk)))


def tell_of_chats(organization_id: UUID, user_id: UUID | None) -> None:
    """Tell a person after commit that many of their chats changed."""
    if user_id is not None:
        person = Tenant(organization_id, user_id)
        transaction.on_commit(partial(_tell, person, write_change("chats.changed")))


def tell_of_turn(turn: Turn, name: str) -> None:
    """Tell the turn's person of this event of it, at once: the caller has committed."""
    if name in STATUS_EVENTS:
        note_write(reader_of(turn))
    person = person_of(turn)
    change = change_of_turn(name, chat_id=turn.chat_id, turn_id=turn.pk)
    if person is not None and change is not None:
        _publish(person, change)


def _tell(person: Tenant, change: bytes) -> None:
    # First: a page that hears of the change reads at once, and must not read from a replica.
    note_write(person)
    _publish(person, change)


def _publish(person: Tenant, change: bytes) -> None:
    channel = channel_of(person)
    try:
        amber_redis.client().publish(channel, change)
    except redis.RedisError as exc:
        logger.warning("change_not_told", reason=type(exc).__name__)
