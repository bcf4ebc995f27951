"""Keep track of which sealed blocks lie on the path to a chat's active leaf.

This is updated with each jump of the leaf, so that text of an abandoned branch is not recalled by
the very turn that an edit starts. Appending to the path changes nothing and costs nothing.
"""

from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from amber.lib.database.cached_sql import cache_sql
from chats.models import ChatMessage, MessageBlock, Turn

# `up` climbs from the leaf to the nearest message that ends a block; `chain` goes on from there by
# the blocks' own links. Blocks off the chain are unmarked, and only rows that change are written.
_MARK_SQL = """
WITH RECURSIVE up AS (
    SELECT m.id, m.parent_id, b.id AS block
    FROM chats_chatmessage m LEFT JOIN chats_messageblock b ON b.last_message_id = m.id
    WHERE m.id = %(leaf)s
  UNION ALL
    SELECT m.id, m.parent_id, b.id
    FROM up JOIN chats_chatmessage m ON m.id = up.parent_id
    LEFT JOIN chats_messageblock b ON b.last_message_id = m.id
    WHERE up.block IS NULL
), chain AS (
    SELECT b.id, b.previous_id FROM chats_messageblock b JOIN up ON up.block = b.id
  UNION ALL
    SELECT b.id, b.previous_id FROM chain JOIN chats_messageblock b ON b.id = chain.previous_id
)
UPDATE chats_messageblock SET on_active_path = (id IN (SELECT id FROM chain))
WHERE chat_id = %(chat)s AND on_active_path <> (id IN (SELECT id FROM chain))
"""


def mark_active_path(chat_id: UUID, leaf_id: UUID | None) -> None:
    """Mark each block as on or off the path to this leaf. One statement.

    Walks messages only up to the nearest block, then from block to block.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MARK_SQL, {"chat": chat_id, "leaf": leaf_id})


def delete_blocks_with(message: ChatMessage) -> None:
    """Delete the block that holds a message which is about to go, and all blocks built on it.

    What remains is sealed again when the chat goes on.
    """
    # `previous` cascades to the blocks behind it.
    MessageBlock.objects.filter(chat_id=message.chat_id, messages__contains=[message.pk]).delete()


def last_block(chat_id: UUID) -> MessageBlock | None:
    """Return the newest block of the active path, without its content."""
    return next(iter(_last(chat_id=chat_id)), None)


@cache_sql
def _last(*, chat_id: UUID) -> QuerySet[MessageBlock]:
    active = MessageBlock.objects.filter(chat=chat_id, on_active_path=True)
    return active.defer("full_content", "vector", "search").order_by("-last_position")[:1]


def path_of_blocks(turn: Turn) -> UUID | None:
    """Return the turn's chat if the chat's marked blocks lie on the turn's path.

    None if the turn's tip is no longer the active leaf: then the tail is read by size.
    """
    if turn.chat is None or turn.chat.active_leaf_id != turn.tip_id:
        return None
    return turn.chat.pk


def newest_blocks_sql(count: int) -> str:
    """Return the last blocks of the path of `%(chat)s` as an expression: numbers of `SealedBlock`, newest first.

    The subselect hides the chat's id from the planner, for which a plan for each chat would look cheaper
    than the one that is kept.
    """
    return f"""ARRAY(
        SELECT ARRAY[first_position, last_position, tokens_before, tokens] FROM chats_messageblock
        WHERE chat_id = (SELECT %(chat)s::uuid) AND on_active_path ORDER BY last_position DESC LIMIT {count}
    )"""  # noqa: S608  (a number)
