"""Periodic chores: a table of names, intervals and functions. There is no beat process.

The sweep of any chat worker rings for a chore that is due (`due_chores`, compare-and-set on its
row); a worker of the `ingest` queue runs it. Each chore works in batches and may be run twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import structlog
from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from accounts.models import IdempotencyRecord
from chats import blocks
from chats.admission import release_leftovers
from chats.digest import digest_turns
from chats.erasing import erase_people
from chats.models import LIVE_STATUSES, Chore, Turn, WorkerHeartbeat
from chats.organization_erasing import erase_organizations
from chats.retention import expire_old_chats, remove_expired_chats
from libraries.erasure import erase_leftovers
from libraries.file_bytes import delete_files
from libraries.models import File
from libraries.survey import survey_libraries
from libraries.vector_index import tend_indexes
from memory import embedding
from providers.budget_counters import forget_counters
from tools.models import ToolCallRecord

logger = structlog.get_logger(__name__)

_BATCH = 1_000


def erase_stateless() -> None:
    """What was said in stateless turns, and asked of them, goes after AMBER_STATELESS_KEEP_SECONDS."""
    kept = timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)
    old = (
        Turn.objects.filter(chat__isnull=True, ended_at__lt=Now() - kept)
        .filter(Q(input__isnull=False) | Q(output__isnull=False))
        .exclude(status__in=LIVE_STATUSES)
    )
    ids = list(old.values_list("pk", flat=True)[:_BATCH])
    Turn.objects.filter(pk__in=ids).update(input=None, output=None, options={}, partial_text="")


def forget_idempotency_keys() -> None:
    kept = timedelta(hours=settings.AMBER_IDEMPOTENCY_HOURS)
    old = IdempotencyRecord.objects.filter(created_at__lt=Now() - kept)
    IdempotencyRecord.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:_BATCH])
    ).delete()


def delete_expired_files() -> None:
    """Rows and bytes, in batches."""
    while delete_files(File.objects.expired()):
        pass


def forget_dead_workers() -> None:
    WorkerHeartbeat.objects.filter(beat_at__lt=Now() - timedelta(hours=1)).delete()


def forget_tool_calls() -> None:
    """The log of calls goes after AMBER_TOOL_LOG_DAYS, in batches."""
    least = Now() - timedelta(days=settings.AMBER_TOOL_LOG_DAYS)
    old = ToolCallRecord.objects.filter(created_at__lt=least)
    while ids := list(old.values_list("pk", flat=True)[:_BATCH]):
        ToolCallRecord.objects.filter(pk__in=ids).delete()


def refresh_tools() -> None:
    """The HTTP client (4 MB) is loaded where the chore runs, not where chores are known."""
    import_module("tools.refreshing").refresh_due()


@dataclass(frozen=True, slots=True)
class _Periodic:
    every_seconds: int
    run: Callable[[], None]


CHORES: dict[str, _Periodic] = {
    "digest_turns": _Periodic(5, digest_turns),
    "embed_waiting_blocks": _Periodic(60, blocks.embed_waiting),
    "embed_waiting_memories": _Periodic(60, embedding.embed_waiting),
    "expire_old_chats": _Periodic(3_600, expire_old_chats),
    "remove_expired_chats": _Periodic(60, remove_expired_chats),
    "erase_people": _Periodic(60, erase_people),
    "erase_organizations": _Periodic(60, erase_organizations),
    "erase_stateless": _Periodic(60, erase_stateless),
    "forget_idempotency_keys": _Periodic(600, forget_idempotency_keys),
    "delete_expired_files": _Periodic(600, delete_expired_files),
    "forget_dead_workers": _Periodic(600, forget_dead_workers),
    "tend_indexes": _Periodic(60, tend_indexes),
    "survey_libraries": _Periodic(60, survey_libraries),
    "erase_leftovers": _Periodic(3_600, erase_leftovers),
    "forget_tool_calls": _Periodic(3_600, forget_tool_calls),
    "refresh_tools": _Periodic(600, refresh_tools),
    "release_leftovers": _Periodic(60, release_leftovers),
    "forget_counters": _Periodic(3_600, forget_counters),
}


def add_chore(name: str, *, every_seconds: int, run: Callable[[], None]) -> None:
    """For rooms above this one, when they start."""
    CHORES[name] = _Periodic(every_seconds, run)


def run(name: str) -> None:
    """A name this process does not know was rung by a newer one: its own workers will run it."""
    if name not in CHORES:
        logger.warning("unknown_chore", chore=name)
        return
    CHORES[name].run()


def due_chores() -> list[str]:
    """Names whose interval has passed; each is given to one caller only.

    One query, and two or three for each that is due: every chat worker asks every few seconds.
    """
    since = dict(Chore.objects.values_list("name", Now() - F("rung_at")))
    due = [
        name
        for name, chore in CHORES.items()
        if (waited := since.get(name)) is None or waited.total_seconds() > chore.every_seconds
    ]
    return [name for name in due if _take(name, CHORES[name].every_seconds)]


def _take(name: str, every_seconds: int) -> bool:
    Chore.objects.get_or_create(name=name)
    due = Q(rung_at__isnull=True) | Q(rung_at__lt=Now() - timedelta(seconds=every_seconds))
    return bool(Chore.objects.filter(due, name=name).update(rung_at=Now()))
