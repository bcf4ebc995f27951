"""Seal old messages of a chat into blocks and embed them, in the background.

Sealing works on what is stored: it may be done twice, stopped anywhere and continued later. A block
is written under the chat's lock, behind the last block of its path, so that two workers cannot
disagree. Blocks that cannot be embedded now wait for `embed_waiting`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.errors import Missing, Unavailable
from amber.lib.search.hybrid import index_text
from chats.messages import transcript
from chats.messages.block_paths import chat_word, last_block, mark_active_path
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from engine.context.blocks import Spoken, block_hash, render, runs
from engine.provider.model import ProviderError
from engine.text import tokens
from libraries.embedding.store import embed_texts
from providers.models import EmbeddingModel
from providers.registry import default_embedding_model

logger = structlog.get_logger(__name__)

Item = TypeVar("Item")

_READ_BATCH = 500
"""Messages read at once while sealing: at 200,000 characters each they still fit into memory."""

_WRITE_BATCH = 32
"""Blocks written in one transaction, and embedded in one call."""

_UNSEALED_SQL = """
WITH RECURSIVE up AS (
    SELECT id, parent_id, position FROM chats_chatmessage WHERE id = %(leaf)s
  UNION ALL
    SELECT m.id, m.parent_id, m.position
    FROM up JOIN chats_chatmessage m ON m.id = up.parent_id WHERE m.position > %(after)s
)
SELECT id FROM up WHERE position > %(after)s ORDER BY position
"""


def seal_for_owner(chat_id: UUID) -> None:
    """Seal the chat on behalf of whose it is, which a worker's message does not say."""
    with across_tenants():
        whose = Chat.objects.filter(pk=chat_id).values_list(*Turn.TENANT_FIELDS).first()
    if whose is not None:
        with as_tenant(Tenant(*whose)):
            seal(chat_id)


def seal(chat_id: UUID) -> int:
    """Seal what can be sealed of the active path, and embed it; return the number of new blocks.

    Costs one walk over the unsealed messages; nothing when there are few. Without a working
    embedder the blocks stay without vectors until `embed_waiting`, and are found by words alone.
    """
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None or chat.active_leaf_id is None:
        return 0
    last = last_block(chat_id)
    sealed = 0
    new_runs = runs(_spoken(_unsealed_ids(chat, last)), block_tokens=settings.AMBER_BLOCK_TOKENS)
    for some in _batches(new_runs, _WRITE_BATCH):
        written = _write(chat, last, some)
        if not written:
            break
        sealed += len(written)
        last = written[-1]
        embed(written)
    return sealed


def embed(blocks: Sequence[MessageBlock]) -> bool:
    """Embed these blocks of one organization. Return False if the embedder failed.

    Of a block that is longer than the embedder's limit, the beginning is embedded.
    """
    try:
        model = default_embedding_model()
        vectors = embed_texts(
            [embedded_text(block.full_content, model) for block in blocks],
            model=model,
            organization_id=blocks[0].organization_id,
        )
    except (ProviderError, Unavailable) as error:
        logger.warning("blocks_not_embedded", chat_id=str(blocks[0].chat_id), reason=error.code)
        return False
    for block, vector in zip(blocks, vectors, strict=True):
        block.vector = vector
        block.embedding_model_id = model.pk
    MessageBlock.objects.bulk_update(blocks, ["vector", "embedding_model_id"])
    return True


def embedded_text(content: str, model: EmbeddingModel) -> str:
    """Return the part of a block that its vector covers."""
    return tokens.beginning(content, model.max_input_tokens, model.encoding)


def embed_waiting() -> None:
    """Embed blocks without a vector of the default model, until none is left or the embedder fails.

    The embedder was away when they were sealed, or operators have chosen another one since.
    """
    try:
        model = default_embedding_model()
    except Unavailable as error:
        logger.warning("blocks_not_embedded", reason=error.code)
        return
    other = Q(embedding_model_id__isnull=True)  # two ranges of the index, not a scan for <>
    other |= Q(embedding_model_id__lt=model.pk) | Q(embedding_model_id__gt=model.pk)
    waiting = MessageBlock.objects.filter(other).defer("vector", "search")
    while blocks := list(waiting[: _WRITE_BATCH * 4]):
        by_organization: dict[UUID, list[MessageBlock]] = {}
        for block in blocks:
            by_organization.setdefault(block.organization_id, []).append(block)
        for mine in by_organization.values():
            for some in _batches(mine, _WRITE_BATCH):
                if not embed(some):
                    return


def _unsealed_ids(chat: Chat, last: MessageBlock | None) -> list[UUID]:
    after = last.last_position if last else -1
    with connection.cursor() as cursor:
        cursor.execute(_UNSEALED_SQL, {"leaf": chat.active_leaf_id, "after": after})
        return [row[0] for row in cursor.fetchall()]


def _spoken(ids: Iterable[UUID]) -> Iterator[Spoken]:
    """Yield the messages in this order, without the system messages that open the chat."""
    opening = True
    for some in _batches(ids, _READ_BATCH):
        rows = ChatMessage.objects.filter(pk__in=some).select_related("file").defer("search")
        for row in sorted(rows, key=lambda row: row.position):
            opening = opening and row.opening_id == row.pk
            if not opening:
                yield _one_spoken(row)


def _one_spoken(row: ChatMessage) -> Spoken:
    label = row.file.name if row.file else (row.tool_call or {}).get("name", "")
    return Spoken(
        id=str(row.pk),
        role=row.role,
        content=row.content,
        created_at=row.created_at,
        tokens=tokens.count_text(row.content),
        label=label,
    )


def _write(
    chat: Chat, last: MessageBlock | None, some: Sequence[list[Spoken]]
) -> list[MessageBlock]:
    """Write blocks for these runs behind `last`; none if the path changed or another worker sealed
    it."""
    positions = dict(
        ChatMessage.objects.filter(
            pk__in=[end.id for run in some for end in (run[0], run[-1])]
        ).values_list("pk", "position")
    )
    blocks: list[MessageBlock] = []
    previous = last
    for run in some:
        if UUID(run[0].id) not in positions or UUID(run[-1].id) not in positions:
            return []
        previous = _block(chat, previous, run, positions)
        blocks.append(previous)
    with transaction.atomic():
        try:
            now = transcript.lock_chat(chat.pk)
        except Missing:
            return []
        current = last_block(chat.pk)
        if (current and current.pk) != (last and last.pk):
            return []
        # Blocks are born on the active path; if the leaf has moved, they may not lie on it.
        MessageBlock.objects.bulk_create(blocks)
        if now.active_leaf_id != chat.active_leaf_id:
            mark_active_path(chat.pk, now.active_leaf_id)
    return blocks


def _block(
    chat: Chat, previous: MessageBlock | None, run: list[Spoken], positions: dict[UUID, int]
) -> MessageBlock:
    first, last = UUID(run[0].id), UUID(run[-1].id)
    content = render(run)
    return MessageBlock(
        organization_id=chat.organization_id,
        chat=chat,
        previous=previous,
        hash=block_hash(previous.hash if previous else "", run),
        full_content=content,
        messages=[UUID(message.id) for message in run],
        first_message_id=first,
        last_message_id=last,
        first_position=positions[first],
        last_position=positions[last],
        from_at=run[0].created_at,
        until_at=run[-1].created_at,
        tokens=sum(message.tokens for message in run),
        tokens_before=previous.tokens_before + previous.tokens if previous else 0,
        search=index_text(content, chat_word(chat.pk)),
    )


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
