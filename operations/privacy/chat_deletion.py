"""Delete whole chats: messages, blocks with their vectors, turns, files nobody else refers to.

It works in batches of some hundred rows, each in its own transaction under the chat's lock, so that
nothing waits for long and a worker that dies leaves a smaller chat, to be removed later. Two
workers at the same chat do no harm. It does not decide which chats go: `privacy.retention` and
`privacy.person_erasure` do, and have hidden the chat (`Chat.expired_at`) before.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Model, Q

from chats.digest.blocks import cached_texts
from chats.messages.evidence import withdraw_messages
from chats.models import Chat, ChatMessage, Feedback, MessageBlock, Turn
from libraries.embedding.store import forget_texts
from libraries.files.storage import remove_files
from libraries.models import Document, File
from providers.models import EmbeddingModel

MESSAGES_AT_ONCE: Final = 300
BLOCKS_AT_ONCE: Final = 100
TURNS_AT_ONCE: Final = 300

_Step = Callable[[Chat], int]
"""Does one batch and returns its size; 0 when nothing is left to do."""


def remove_chat(chat_id: UUID) -> bool:
    """Delete a chat.

    Return False when another worker holds it, or somebody wrote to it meanwhile.
    """
    # The order is that of the references: a row goes before the rows that it names.
    steps: tuple[_Step, ...] = (
        _stop_turns,
        _withdraw_evidence,
        _remove_blocks,
        _detach_turns,
        _remove_feedback,
        _remove_messages,
        _remove_turns,
    )
    return all(_repeat(step, chat_id) for step in steps) and _remove_row(chat_id)


def _repeat(step: _Step, chat_id: UUID) -> bool:
    """Repeat a step until nothing is left to do. Return False when the chat is locked or gone."""
    while True:
        with transaction.atomic():
            chat = _lock_chat(chat_id)
            if chat is None:
                return False
            if not step(chat):
                return True


def _lock_chat(chat_id: UUID) -> Chat | None:
    free = Chat.objects.select_for_update(skip_locked=True)
    chat: Chat | None = free.filter(pk=chat_id).first()
    return chat


def _stop_turns(chat: Chat) -> int:
    """Delete live turns: their workers notice that the row is gone, and stop."""
    Turn.objects.live().filter(chat=chat).delete()
    Chat.objects.filter(pk=chat.pk).update(active_leaf=None)
    return 0


def _withdraw_evidence(chat: Chat) -> int:
    withdraw_messages(chat, ChatMessage.objects.filter(chat=chat))
    return 0


def _remove_blocks(chat: Chat) -> int:
    """Delete blocks and their vectors, newest first, since each names the one before."""
    newest = MessageBlock.objects.filter(chat=chat).order_by("-last_position")
    some = list(newest.only("pk", "full_content", "pieces")[:BLOCKS_AT_ONCE])
    models = list(EmbeddingModel.objects.select_related("provider"))
    texts = {text for block in some for model in models for text in cached_texts(block, model)}
    forget_texts(texts, organization_id=chat.organization_id)
    return _delete(MessageBlock, [block.pk for block in some])


def _detach_turns(chat: Chat) -> int:
    """Clear the turns' references to messages, which go next."""
    naming = Turn.objects.filter(Q(question__isnull=False) | Q(tip__isnull=False), chat=chat)
    ids = list(naming.values_list("pk", flat=True)[:TURNS_AT_ONCE])
    Turn.objects.filter(pk__in=ids).update(question=None, tip=None, digest_at=None)
    return len(ids)


def _remove_feedback(chat: Chat) -> int:
    ids = Feedback.objects.filter(chat=chat).values_list("pk", flat=True)[:MESSAGES_AT_ONCE]
    return _delete(Feedback, list(ids))


def _remove_messages(chat: Chat) -> int:
    """Delete messages with their files, the deepest first, since each names its parent."""
    deepest = ChatMessage.objects.filter(chat=chat).order_by("-position")
    found = dict(deepest.values_list("pk", "file_id")[:MESSAGES_AT_ONCE])
    deleted = _delete(ChatMessage, list(found))
    _drop_unreferenced({file_id for file_id in found.values() if file_id is not None})
    return deleted


def _drop_unreferenced(file_ids: Collection[UUID]) -> None:
    if not file_ids:
        return
    held = ChatMessage.objects.filter(file__in=file_ids).values_list("file", flat=True)
    indexed = Document.objects.filter(file__in=file_ids).values_list("file", flat=True)
    remove_files(File.objects.filter(pk__in=set(file_ids) - set(held) - set(indexed)))


def _remove_turns(chat: Chat) -> int:
    ids = Turn.objects.filter(chat=chat).values_list("pk", flat=True)[:TURNS_AT_ONCE]
    return _delete(Turn, list(ids))


@transaction.atomic
def _remove_row(chat_id: UUID) -> bool:
    chat = _lock_chat(chat_id)
    if chat is None:
        return False
    for model in (Feedback, ChatMessage, Turn, MessageBlock):
        if model.objects.filter(chat=chat).exists():
            return False
    chat.delete()
    return True


def _delete(model: type[Model], ids: Sequence[Any]) -> int:
    """Delete rows by id in one statement.

    Nothing refers to them any more, so no cascade is read.
    """
    rows = model._default_manager.filter(pk__in=ids)
    return int(rows._raw_delete(rows.db)) if ids else 0
