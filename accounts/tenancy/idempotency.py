"""Honour `Idempotency-Key`: the same POST sent twice starts its work once.

`begin` claims the key before the work, `settle` stores the answer in the transaction that does
the work, `release` gives the key back when the work was refused. A claim carries its date as a
fence: whoever was so slow that another took the claim over may neither settle nor release.
After AMBER_IDEMPOTENCY_HOURS a key is new again.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.database.batches import delete_in_batches
from amber.lib.errors import Conflict, Invalid

T = TypeVar("T")

MAX_KEY_CHARS = 200
_RECORDS_AT_ONCE = 1_000
ABANDONED_AFTER = timedelta(seconds=60)
"""The age from which an unanswered claim is taken over: its process has died."""
QUICK_ABANDONED_AFTER = timedelta(seconds=5)
"""The same for work that is one short transaction, as asking a question is: who asks again because
a web process died must not wait long. If the first request is alive, and was only slow to get a lock
or a connection, its fence undoes it."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The first answer, to be given again."""

    status: int
    answer: dict[str, Any]


def begin(
    principal: Principal,
    *,
    route: str,
    key: str,
    body: object,
    abandoned_after: timedelta = ABANDONED_AFTER,
) -> IdempotencyRecord | Replay:
    """Claim `key` for this principal and route, or return the first answer to the same request.

    `body` is the request's data as parsed. Raises Conflict (idempotency_mismatch: another body;
    idempotency_in_progress: the first request is not answered yet) and Invalid (a bad key).
    """
    if not key.isprintable() or not 0 < len(key) <= MAX_KEY_CHARS:
        raise Invalid(f"Idempotency-Key: 1 to {MAX_KEY_CHARS} printable characters.")
    sha256 = hashlib.sha256(
        orjson.dumps(body, option=orjson.OPT_SORT_KEYS, default=str)
    ).hexdigest()
    place = {
        "organization_id": principal.organization_id,
        "principal": principal.label,
        "route": route,
        "key": key,
    }
    record = _claim_place(place, sha256)
    if record is None and _old().filter(**place).delete()[0]:
        record = _claim_place(place, sha256)
    return record or _read_claim(place, sha256, abandoned_after)


def settle(record: IdempotencyRecord | None, *, status: int, answer: Mapping[str, Any]) -> None:
    """Store the answer, plain JSON; call it inside the transaction that does the work.

    Raises Conflict if the claim was taken over: the work must be undone.
    """
    if record is not None and not _own_claim(record).update(
        status=status, answer=answer, updated_at=timezone.now()
    ):
        raise _in_progress()


def release(record: IdempotencyRecord | None) -> None:
    """Free the key, because the work was refused."""
    if record is not None:
        _own_claim(record).delete()


def _claim_place(place: dict[str, Any], sha256: str) -> IdempotencyRecord | None:
    """Return the new claim, or None if the key is taken."""
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(**place, body_sha256=sha256)
    except IntegrityError:
        return None


def _read_claim(
    place: dict[str, Any], sha256: str, abandoned_after: timedelta
) -> IdempotencyRecord | Replay:
    """Return the first answer, or the claim taken over from a process that died.

    Raises Conflict.
    """
    record = IdempotencyRecord.objects.filter(**place).first()
    if record is None:
        raise _in_progress()
    if record.body_sha256 != sha256:
        raise Conflict(code="idempotency_mismatch")
    if record.status is not None:
        return Replay(record.status, record.answer or {})
    now = timezone.now()
    # A claim that lies in the future is from before the clock was set back.
    if abs(now - record.updated_at) < abandoned_after or not _own_claim(record).update(
        updated_at=now
    ):
        raise _in_progress()
    record.updated_at = now
    return record


def _own_claim(record: IdempotencyRecord) -> QuerySet[IdempotencyRecord]:
    """Return the claim unless it was answered or taken over meanwhile: its date is the fence."""
    return IdempotencyRecord.objects.filter(
        pk=record.pk, status__isnull=True, updated_at=record.updated_at
    )


def forget_idempotency_keys() -> None:
    """Delete the records of keys that are new again."""
    delete_in_batches(_old(), at_most=_RECORDS_AT_ONCE)


def _old() -> QuerySet[IdempotencyRecord]:
    oldest_kept = timezone.now() - timedelta(hours=settings.AMBER_IDEMPOTENCY_HOURS)
    return IdempotencyRecord.objects.filter(created_at__lt=oldest_kept)


def _in_progress() -> Conflict:
    return Conflict(code="idempotency_in_progress", retry_after_seconds=1)


def once(
    principal: Principal,
    *,
    route: str,
    key: str | None,
    body: object,
    work: Callable[[IdempotencyRecord | None], T],
    abandoned_after: timedelta = ABANDONED_AFTER,
) -> T | Replay:
    """Return `work(claim)`, or the first answer to the same request; `work(None)` without a key.

    `work` settles the claim in its own transaction; when it raises, the key is free again.
    """
    if key is None:
        return work(None)
    claim = begin(principal, route=route, key=key, body=body, abandoned_after=abandoned_after)
    if isinstance(claim, Replay):
        return claim
    try:
        return work(claim)
    except BaseException:
        release(claim)
        raise
