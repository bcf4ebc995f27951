"""Warn an organization's owners by mail when a budget runs low, and when it refuses questions: each once
in a period.

What is counted is warned of in the transaction that counts it. A refusal leaves no row behind, so its
budget is noted in Redis, where a periodic job finds it; a lost note is made again by the next refusal.
Budgets of guests are not warned of: reaching them is what they are for.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.utils import timezone
from redis.exceptions import RedisError

from accounts.mail.outbox import owners_of, post_to_all, sends_mail
from accounts.models import MailKind, Organization
from amber.lib import redis as amber_redis
from providers.budgets.counters import CounterAmounts
from providers.budgets.rules import ApplicableBudget, period_end, period_start
from providers.models import Budget, BudgetCounter, BudgetScope

logger = structlog.get_logger(__name__)

RUNNING_LOW: Final = 80
USED_UP: Final = 100
NOTED_SECONDS: Final = 600.0
"""How long a process notes no second refusal of a budget: a program may ask again at once."""
_AT_ONCE: Final = 100

_noted: dict[UUID, float] = {}
"""Until when (`time.monotonic`) a budget's refusals are known."""


def warn_of_use(
    organization_id: UUID,
    applying: Sequence[ApplicableBudget],
    counted: Mapping[UUID, CounterAmounts],
    used: Mapping[UUID, Decimal],
    now: datetime,
) -> None:
    """Warn of budgets of which a share was reached by what was `used` just now. No query otherwise."""
    if not sends_mail():
        return
    for budget in applying:
        after = counted[budget.budget_id].used
        share = _share_reached(after - used[budget.budget_id], after, budget.limit)
        if share and budget.scope != BudgetScope.GUEST:
            _warn(organization_id, budget, share, after, now)


def note_refusal(refused: ApplicableBudget) -> None:
    """Note that the budget refused something. One round trip to Redis in NOTED_SECONDS."""
    moment = time.monotonic()
    is_known = _noted.get(refused.budget_id, 0.0) > moment
    if is_known or refused.scope == BudgetScope.GUEST or not sends_mail():
        return
    _noted[refused.budget_id] = moment + NOTED_SECONDS
    try:
        amber_redis.client().sadd(_refusals_key(), str(refused.budget_id))
    except (RedisError, OSError) as error:
        logger.warning("refusal_not_noted", reason=type(error).__name__)


def warn_of_refusals() -> None:
    """Warn of the budgets that refused something; a periodic job. Raises RedisError."""
    noted: list[bytes] = amber_redis.client().spop(_refusals_key(), _AT_ONCE)  # type: ignore[assignment]
    now = timezone.now()
    for budget in Budget.objects.filter(pk__in=[each.decode() for each in noted]):
        applicable = ApplicableBudget(
            budget.pk, budget.scope, budget.period, budget.unit, budget.limit, budget.subject
        )
        _warn(budget.organization_id, applicable, USED_UP, _most_used(budget, now), now)


def _share_reached(before: Decimal, after: Decimal, limit: Decimal) -> int:
    """Return the highest share that was not reached before; 0 if none."""
    for share in (USED_UP, RUNNING_LOW):
        mark = limit * share / 100
        if before < mark <= after:
            return share
    return 0


def _warn(
    organization_id: UUID, budget: ApplicableBudget, share: int, used: Decimal, now: datetime
) -> None:
    """Write the mails, unless this period has had them. One query, or three."""
    owners = owners_of(organization_id)
    names = Organization.objects.filter(pk=organization_id).values_list("name", flat=True)
    start = period_start(budget.period, now)
    post_to_all(
        MailKind.BUDGET,
        owners,
        cause=f"budget:{budget.budget_id}:{start}:{share}",
        organization_id=organization_id,
        details={
            "organization": names.first() or "",
            "scope": budget.scope,
            "period": budget.period,
            "share": share,
            "used": str(used),
            "limit": str(budget.limit),
            "unit": budget.unit,
            "resets_at": f"{period_end(budget.period, now):%Y-%m-%d %H:%M}",
        },
    )


def _most_used(budget: Budget, now: datetime) -> Decimal:
    """Return what the subject that used most has used in this period."""
    counters = BudgetCounter.objects.filter(
        budget=budget, period_start=period_start(budget.period, now)
    )
    most = counters.order_by("-used").values_list("used", flat=True).first()
    return Decimal(0) if most is None else most


def _refusals_key() -> bytes:
    return amber_redis.key("budget-refusals", None)
