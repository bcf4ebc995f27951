"""Digest ended turns in the background: seal old messages, and learn facts about the user.

`Turn.digest_at` says when this is due. A worker that claims a chat's turns moves it on by some
minutes first, so that work which broke off is done again. Doing it twice does no harm.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.errors import RETRYABLE, AmberError
from amber.lib.secrets import DecryptError
from amber.lib.workers.time_slice import TimeSlice
from chats.digest.blocks import seal_chat
from chats.digest.learning import learn
from chats.models import Chat, Turn
from engine.events import TurnStatus
from engine.provider.model import ProviderError

logger = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 300
"""How long a digest may take, and how long one that failed waits for the next try."""

GIVE_UP_SECONDS: Final = 86_400
"""After a day without its provider, a turn is no longer learnt from."""

_PASSING: Final = RETRYABLE | {"provider_auth", "DecryptError"}
"""Errors that may go away by themselves, or once operators correct a key."""

_CHATS: Final = 16
_THREADS: Final = 8
_LEARNT_FROM: Final = frozenset({TurnStatus.COMPLETED, TurnStatus.INCOMPLETE})


def digest_turns() -> None:
    """Digest what is due, chat by chat, for a while: other periodic jobs wait behind this one."""
    time_slice = TimeSlice()
    while not time_slice.is_over() and (claimed := _claim()):
        pool = _pool(os.getpid())
        running = [pool.submit(_digest_in_thread, each) for each in claimed.items()]
        # For all of them: an error of one must not leave the others running behind this job.
        wait(running)
        for each in running:
            each.result()


@lru_cache(maxsize=1)
def _pool(pid: int) -> ThreadPoolExecutor:
    """Return the process's pool: threads do not survive a fork.

    Its threads stay: each new one makes a Django connection object, in a reference cycle, and eight
    every five seconds were 30 MB an hour.
    """
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="digest")


@transaction.atomic
def _claim() -> dict[tuple[Tenant, UUID], list[UUID]]:
    """Claim due turns of some chats, with all others that wait there; return them by chat and whose
    it is.

    Turns that another worker holds, or that are to be tried again later, are left out.
    """
    due = Turn.objects.filter(digest_at__lte=Now()).order_by("digest_at")
    chats = list(due.values_list("chat_id", flat=True).distinct()[:_CHATS])
    # Below AGAIN_SECONDS: due later than this is what a worker has just claimed, or failed at.
    soon = Now() + timedelta(seconds=min(settings.AMBER_DIGEST_SECONDS, AGAIN_SECONDS / 2))
    waiting = Turn.objects.filter(chat_id__in=chats, digest_at__lte=soon)
    fields = ("pk", "chat_id", *Turn.TENANT_FIELDS)
    locked = list(waiting.select_for_update(skip_locked=True).values_list(*fields))
    ids = [pk for pk, *_ in locked]
    Turn.objects.filter(pk__in=ids).update(digest_at=Now() + timedelta(seconds=AGAIN_SECONDS))
    by_chat: dict[tuple[Tenant, UUID], list[UUID]] = {}
    for pk, chat_id, *whose in locked:
        by_chat.setdefault((Tenant(*whose), chat_id), []).append(pk)
    return by_chat


def _digest_in_thread(claimed: tuple[tuple[Tenant, UUID], Sequence[UUID]]) -> None:
    (tenant, chat_id), turn_ids = claimed
    try:
        with as_tenant(tenant):
            digest(chat_id, turn_ids)
    finally:
        connections.close_all()


def digest(chat_id: UUID, turn_ids: Sequence[UUID]) -> None:
    """Seal the chat and learn from these turns of it. If a provider fails, they stay due."""
    for chat in _before_expiry(chat_id=chat_id):
        seal_chat(chat)
        # One by one, by a statement that is built once: mostly there is one.
        turns = [turn for turn_id in turn_ids for turn in _learnt_from(turn_id=turn_id)]
        turns.sort(key=lambda turn: turn.created_at)
        if turns and not _try_learning(chat, turns):
            return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE chats_turn SET digest_at = NULL WHERE id = ANY(%s)", [list(turn_ids)]
        )


@cache_sql
def _before_expiry(*, chat_id: UUID) -> QuerySet[Chat]:
    return Chat.objects.before_expiry().filter(pk=chat_id)


@cache_sql
def _learnt_from(*, turn_id: UUID) -> QuerySet[Turn]:
    ended = Turn.objects.filter(pk=turn_id, status__in=_LEARNT_FROM)
    return ended.select_related("assistant", "organization")


def _try_learning(chat: Chat, turns: Sequence[Turn]) -> bool:
    """Learn from the turns.

    Return False to try again later: the error may pass, and is not a day old.
    """
    try:
        learn(chat, turns)
    except (ProviderError, AmberError, DecryptError) as error:
        code = getattr(error, "code", type(error).__name__)
        logger.warning("chat_not_learnt_from", chat_id=str(chat.pk), reason=code)
        ended_at = turns[-1].ended_at
        is_old = ended_at is None or (timezone.now() - ended_at).total_seconds() > GIVE_UP_SECONDS
        return is_old or code not in _PASSING
    return True
