"""Sum what all organizations used, day by day (UTC), at the price of today's calls.

A day that is over is summed once and kept in Redis; today's sums are kept for a minute. A periodic
job sums a day soon after it ended (`keep_past_days`), so that a page does not have to. Without Redis
every day is summed anew: slower, and right.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import orjson
from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from providers.models import UsageKind, UsageRecord, made_between

SHOWN_DAYS: Final = 14
KEPT_DAYS: Final = SHOWN_DAYS + 2
FRESH_SECONDS: Final = 60
LATE: Final = timedelta(hours=1)
"""A call of yesterday may be written today; after this long no longer."""


@dataclass(frozen=True, slots=True)
class DaySum:
    """A day's calls. A turn counts on every day on which it called a model."""

    day: str
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    cost: str = "0"


def day_sum_key(day: date) -> bytes:
    return amber_redis.key("usage-day", None, str(day))


def recent_days() -> list[DaySum]:
    """Return the sums of the last SHOWN_DAYS days, oldest first. At most one query."""
    today = timezone.now().astimezone(UTC).date()
    days = [today - timedelta(days=n) for n in range(SHOWN_DAYS - 1, -1, -1)]
    found = _read(days)
    missing = [day for day in days if day not in found]
    if missing:
        summed = _sum(missing)
        _keep(summed.values())
        found |= summed
    return [found[day] for day in days]


def keep_past_days() -> None:
    """Sum the days that are over and not kept yet: a periodic job."""
    recent_days()


def _sum(days: Sequence[date]) -> dict[date, DaySum]:
    """Sum these days: one query over the ids from the earliest of them on."""
    since = datetime.combine(min(days), time(), UTC)
    rows = UsageRecord.objects.filter(made_between(since, None))
    summed = (
        rows.annotate(day=TruncDate("created_at", tzinfo=UTC))
        .order_by()
        .values("day")
        .annotate(
            calls=Count("pk"),
            turns=Count("turn_id", distinct=True, filter=Q(kind=UsageKind.CHAT)),
            tokens=Sum("prompt_tokens") + Sum("completion_tokens"),
            spent=Sum("cost"),
        )
    )
    found = {row["day"]: _day_sum(row) for row in summed}
    return {day: found.get(day, DaySum(str(day))) for day in days}


def _day_sum(row: Mapping[str, Any]) -> DaySum:
    return DaySum(str(row["day"]), row["turns"], row["calls"], row["tokens"], str(row["spent"]))


def _read(days: Sequence[date]) -> dict[date, DaySum]:
    try:
        kept: Any = amber_redis.client().mget([day_sum_key(day) for day in days])
    except (RedisError, OSError):
        return {}
    return {day: DaySum(**orjson.loads(said)) for day, said in zip(days, kept, strict=True) if said}


def _keep(sums: Iterable[DaySum]) -> None:
    """Keep sums for others; what cannot be kept is summed again."""
    try:
        with amber_redis.client().pipeline(transaction=False) as commands:
            for each in sums:
                day = date.fromisoformat(each.day)
                commands.set(day_sum_key(day), orjson.dumps(asdict(each)), ex=_seconds_to_keep(day))
            commands.execute()
    except (RedisError, OSError):
        return


def _seconds_to_keep(day: date) -> int:
    ended = datetime.combine(day + timedelta(days=1), time(), UTC) + LATE
    return KEPT_DAYS * 86_400 if ended < timezone.now() else FRESH_SECONDS
