"""`Idempotency-Key`: the same POST sent twice starts its work once (design 5.10).

`begin` claims the key before the work, `settle` stores the answer in the transaction that does
the work, `release` gives the key back when the work was refused. Kept AMBER_IDEMPOTENCY_HOURS.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.errors import Conflict, Invalid

MAX_KEY_CHARS = 200
ABANDONED_AFTER = timedelta(seconds=60)
"""An unanswered claim older than this was left by a process that died: it is taken over."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The first answer, to be given again."""

    status: int
    answer: dict[str, Any]


def begin(
    principal: Principal, *, route: str, key: str, body: object
) -> IdempotencyRecord | Replay:
    """Claim `key` for this principal and route, or the first answer to the same request.

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
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(**place, body_sha256=sha256)
    except IntegrityError:
        return _meet(place, sha256)


def _meet(place: dict[str, Any], sha256: str) -> IdempotencyRecord | Replay:
    """Somebody claimed this key before."""
    record = IdempotencyRecord.objects.filter(**place).first()
    if record is None:
        raise _in_progress()
    if record.body_sha256 != sha256:
        raise Conflict(code="idempotency_mismatch")
    if record.status is not None:
        return Replay(record.status, record.answer)
    now = timezone.now()
    taken_over = IdempotencyRecord.objects.filter(
        pk=record.pk, status__isnull=True, updated_at__lt=now - ABANDONED_AFTER
    ).update(updated_at=now)
    if not taken_over:
        raise _in_progress()
    return record


def _in_progress() -> Conflict:
    return Conflict(code="idempotency_in_progress", retry_after_seconds=1)


def settle(record: IdempotencyRecord | None, *, status: int, answer: dict[str, Any]) -> None:
    """Store the answer; call it inside the transaction that does the work."""
    if record is not None:
        IdempotencyRecord.objects.filter(pk=record.pk).update(
            status=status, answer=answer, updated_at=timezone.now()
        )


def release(record: IdempotencyRecord | None) -> None:
    """The work was refused: the key is free again."""
    if record is not None:
        IdempotencyRecord.objects.filter(pk=record.pk, status__isnull=True).delete()
