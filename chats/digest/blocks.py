"""Seal old messages of a chat into blocks and embed them, in the background.

Sealing works on what is stored: it may be done twice, stopped anywhere and continued later. A block
is written under the chat's lock, behind the last block of its path, so that two workers cannot
disagree. Blocks that cannot be embedded now wait for `embed_waiting`, blocks that an older release indexed
for `reindex_waiting`: until then they are found as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.errors import Missing, Unavailable
from amber.lib.workers.time_slice import TimeSlice
from chats.messages import transcript
from chats.messages.block_paths import last_block, mark_active_path
from chats.messages.block_words import INDEX_VERSION, count_words, index_pieces, spoken_of
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from engine.context.blocks import SpokenMessage, block_hash, render, runs
from engine.context.pieces import cut_run, read_pieces, store_pieces
from engine.messages import ASKING_ROLES
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
    SELECT id, parent_id, position, role, octet_length(content) AS bytes
    FROM chats_chatmessage WHERE id = %(leaf)s
  UNION ALL
    SELECT m.id, m.parent_id, m.position, m.role, octet_length(m.content)
    FROM up JOIN chats_chatmessage m ON m.id = up.parent_id WHERE m.position > %(after)s
)
SELECT id, role, bytes FROM up WHERE position > %(after)s ORDER BY position
"""


def seal_for_owner(chat_id: UUID) -> None:
    """Seal the chat on behalf of whose it is, which a worker's message does not say."""
    with across_tenants():
        whose = Chat.objects.filter(pk=chat_id).values_list(*Turn.TENANT_FIELDS).first()
    if whose is not None:
        with as_tenant(Tenant(*whose)):
            seal(chat_id)


def seal(chat_id: UUID) -> int:
    """Seal what can be sealed of the chat, and embed it; return the number of new blocks."""
    chat = Chat.objects.filter(pk=chat_id).first()
    return seal_chat(chat) if chat else 0


def seal_chat(chat: Chat) -> int:
    """Seal what can be sealed of the active path, and embed it; return the number of new blocks.

    Costs one walk over the unsealed messages, whose texts are read if they may fill a block. Without a
    working embedder the blocks stay without vectors until `embed_waiting`, and are found by words alone.
    """
    if chat.active_leaf_id is None:
        return 0
    last = last_block(chat.pk)
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

    Each piece is embedded by itself, and the block's vector is their mean: what is searched first. The
    built-in embedder knows no more than the words do, so it embeds blocks alone.
    """
    try:
        model = default_embedding_model()
        texts = [embedded_texts(block, model) for block in blocks]
        vectors = embed_texts(
            [text for some in texts for text in some],
            model=model,
            organization_id=blocks[0].organization_id,
        )
    except (ProviderError, Unavailable) as error:
        logger.warning("blocks_not_embedded", chat_id=str(blocks[0].chat_id), reason=error.code)
        return False
    rest = iter(vectors)
    for block, some in zip(blocks, texts, strict=True):
        mine = list(islice(rest, len(some)))
        # Of whatever length: only its direction is compared (<=>).
        block.vector = sum(mine) / len(mine)
        block.piece_vectors = None if model.provider.is_offline else mine
        block.embedding_model_id = model.pk
    MessageBlock.objects.bulk_update(blocks, ["vector", "piece_vectors", "embedding_model_id"])
    return True


def embedded_texts(block: MessageBlock, model: EmbeddingModel) -> list[str]:
    """Return the texts that this model embeds of a block, each as far as it reads: the pieces, or the
    whole."""
    content = block.full_content
    parts = [content]
    if block.pieces and not model.provider.is_offline:
        parts = [content[piece.start : piece.end] for piece in read_pieces(block.pieces)]
    return [_beginning(part, model) for part in parts]


def cached_texts(block: MessageBlock, model: EmbeddingModel) -> set[str]:
    """Return all texts of a block that may have been embedded, also before it was cut into pieces."""
    return {*embedded_texts(block, model), _beginning(block.full_content, model)}


def _beginning(text: str, model: EmbeddingModel) -> str:
    return tokens.beginning(text, model.max_input_tokens, model.encoding)


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
    waiting = MessageBlock.objects.filter(other).defer("vector", "piece_vectors", "search")
    while blocks := list(waiting[: _WRITE_BATCH * 4]):
        by_organization: dict[UUID, list[MessageBlock]] = {}
        for block in blocks:
            by_organization.setdefault(block.organization_id, []).append(block)
        for mine in by_organization.values():
            for some in _batches(mine, _WRITE_BATCH):
                if not embed(some):
                    return


def reindex_waiting() -> None:
    """Index blocks anew whose words an older release chose, for a while: other periodic jobs wait.

    They are found meanwhile, by the words they have.
    """
    time_slice = TimeSlice()
    old = MessageBlock.objects.filter(index_version__lt=INDEX_VERSION)
    while not time_slice.is_over():
        blocks = list(old.defer("vector", "piece_vectors", "search")[:_WRITE_BATCH])
        for block in blocks:
            _reindex(block)
        if not blocks:
            return


def _reindex(block: MessageBlock) -> None:
    """Cut a block into pieces, unless it is, and index them. One that was embedded as a whole waits for
    vectors of its pieces."""
    run = list(_spoken(block.messages, is_opening=False))
    fields: dict[str, Any] = {"index_version": INDEX_VERSION}
    if block.pieces is None:
        pieces = cut_run(run, count_words)
        fields["pieces"] = store_pieces(pieces)
        fields["embedding_model_id"] = None
    else:
        pieces = read_pieces(block.pieces)
    fields["search"] = index_pieces(block.full_content, pieces, run, block.chat_id)
    MessageBlock.objects.filter(pk=block.pk).update(**fields)


def _unsealed_ids(chat: Chat, last: MessageBlock | None) -> list[UUID]:
    """Return what lies behind the last block, oldest first; nothing if it cannot fill one: the last
    exchange never goes into a block, and a token has at least one byte."""
    after = last.last_position if last else -1
    with connection.cursor() as cursor:
        cursor.execute(_UNSEALED_SQL, {"leaf": chat.active_leaf_id, "after": after})
        found = cursor.fetchall()
    asked = max((place for place, row in enumerate(found) if row[1] in ASKING_ROLES), default=0)
    is_full = sum(row[2] for row in found[:asked]) >= settings.AMBER_BLOCK_TOKENS
    return [row[0] for row in found] if is_full else []


def _spoken(ids: Iterable[UUID], *, is_opening: bool = True) -> Iterator[SpokenMessage]:
    """Yield the messages in this order, without the system messages that open the chat, if they begin
    it."""
    opening = is_opening
    with_names = ChatMessage.objects.select_related("file", "assistant")
    for some in _batches(ids, _READ_BATCH):
        rows = with_names.filter(pk__in=some).defer("search")
        for row in sorted(rows, key=lambda row: row.position):
            opening = opening and row.opening_id == row.pk
            if not opening:
                yield spoken_of(row)


def _write(
    chat: Chat, last: MessageBlock | None, some: Sequence[list[SpokenMessage]]
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
    chat: Chat, previous: MessageBlock | None, run: list[SpokenMessage], positions: dict[UUID, int]
) -> MessageBlock:
    first, last = UUID(run[0].id), UUID(run[-1].id)
    content = render(run)
    pieces = cut_run(run, count_words)
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
        pieces=store_pieces(pieces),
        search=index_pieces(content, pieces, run, chat.pk),
        index_version=INDEX_VERSION,
    )


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
