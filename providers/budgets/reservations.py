"""Hold budgets: reserve before a call, count what it used, release when it is over.

A counter for each budget, subject and period holds what was used and what is reserved; a
reservation names its holder. Reserving changes the counters first and compares them with the
limits afterwards: their rows are locked by then, in the order of their budgets, so that neither
concurrent calls nor a crash can overshoot. Counters are the last rows a transaction locks;
releasing twice releases once.

Each process remembers for ABSENCE_SECONDS that an organization has no budget: most have none, and
their turns cost no query.
This module knows nothing of turns: whoever holds something says when it is over
(`chats.turns.admission`).
"""

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from amber.lib.errors import RateLimited
from providers.budgets.counters import CounterAmounts, change_counters
from providers.budgets.notices import note_refusal, warn_of_use
from providers.budgets.rules import (
    ApplicableBudget,
    Spending,
    keep_narrowest,
    refusal,
)
from providers.budgets.scopes import BudgetSubject, ids_of
from providers.models import Budget, BudgetCounter, BudgetReservation, BudgetScope

ABSENCE_SECONDS: Final = 10.0
"""How long an organization's first budget may be ignored by processes that did not create it."""

_absent: dict[UUID, float] = {}
"""Until when (`time.monotonic`) an organization is taken to have no budget."""


def reserve(
    budget_subject: BudgetSubject, asked: Callable[[], Spending], *, holder_id: UUID
) -> bool:
    """Hold what a call may use until `release(holder_id)`; False if no budget applies.

    `asked` is called only where one does. Part of the caller's transaction: no query, or four.
    Raises RateLimited (budget_exceeded); then nothing is held.
    """
    applying = _find_applicable(budget_subject)
    if not applying:
        return False
    _reserve(applying, asked(), holder_id)
    return True


def renew(budget_subject: BudgetSubject, asked: Spending, *, holder_id: UUID) -> RateLimited | None:
    """Hold this much for the holder's next call, instead of what was held.

    Return the refusal if a budget does not allow it; what was held then stays held.
    """
    # The savepoint takes the release back when the new reservation is refused.
    try:
        with transaction.atomic():
            release([holder_id])
            _reserve(_find_applicable(budget_subject, is_budgeted=True), asked, holder_id)
    except RateLimited as refused:
        return refused
    return None


def count(budget_subject: BudgetSubject, used: Spending, *, is_budgeted: bool = False) -> None:
    """Add what a call has used, and warn of budgets that run low. No query, or two.

    `is_budgeted`: something was reserved for it, so that some budget applies whatever this process
    remembers.
    """
    applying = _find_applicable(budget_subject, is_budgeted=is_budgeted)
    if not applying:
        return
    now = timezone.now()
    with transaction.atomic(savepoint=False):
        counted = change_counters(applying, now, used=used)
        amounts = {each.budget_id: used.of(each.unit) for each in applying}
        warn_of_use(budget_subject.organization_id, applying, counted, amounts, now)


def release(holder_ids: Collection[UUID]) -> None:
    """Give back what is reserved for these holders, if anything. Two queries."""
    # The counters are locked before they change, in the order of their budgets like everywhere:
    # the UPDATE alone would lock them in any order and could deadlock with a reservation.
    mine = BudgetReservation.objects.filter(holder_id__in=holder_ids)
    counters = BudgetCounter.objects.filter(pk__in=mine.values("counter_id"))
    locked = counters.select_for_update(no_key=True)
    with transaction.atomic():
        if list(locked.order_by("budget_id", "subject", "period_start").values_list("pk")):
            with connection.cursor() as cursor:
                cursor.execute(_RELEASE_SQL, [list(holder_ids)])


def forget_absence() -> None:
    """Make this process look for budgets again, after they have changed."""
    _absent.clear()


def holders_since(moment: datetime, *, at_most: int) -> list[UUID]:
    """Return those who have held something since before `moment`, oldest first."""
    old = BudgetReservation.objects.filter(created_at__lt=moment).order_by("created_at")
    return list(dict.fromkeys(old.values_list("holder_id", flat=True)[:at_most]))


# -- Which budgets apply -----------------------------------------------------------------------


def _find_applicable(
    budget_subject: BudgetSubject, *, is_budgeted: bool = False
) -> list[ApplicableBudget]:
    """Return the budgets that apply, in the order in which their counters are locked.

    No query while it is known that there are none, else one to three.
    """
    organization_id = budget_subject.organization_id
    if not is_budgeted and _absent.get(organization_id, 0.0) > time.monotonic():
        return []
    subjects = ids_of(budget_subject)
    wanted = Q(scope=BudgetScope.ORGANIZATION)
    for scope, subject in subjects.items():
        wanted |= Q(scope=scope, subject__in=["", subject])
    whose = Q(assistant_id=None) | Q(assistant_id=budget_subject.assistant_id)
    mine = Budget.objects.filter(organization_id=organization_id)
    found = keep_narrowest(_make_applicable(row, subjects) for row in mine.filter(wanted & whose))
    if not found and not mine.exists():
        _absent[organization_id] = time.monotonic() + ABSENCE_SECONDS
    return found


def _make_applicable(row: Budget, subjects: dict[str, str]) -> ApplicableBudget:
    return ApplicableBudget(
        budget_id=row.pk,
        scope=row.scope,
        period=row.period,
        unit=row.unit,
        limit=row.limit,
        subject=subjects.get(row.scope, ""),
        is_named=row.subject != "",
        is_of_assistant=row.assistant_id is not None,
    )


# -- Holding -------------------------------------------------------------------------------------

_RELEASE_SQL: Final = """
WITH released AS (
    DELETE FROM providers_budgetreservation WHERE holder_id = ANY(%s) RETURNING counter_id, amount
)
UPDATE providers_budgetcounter AS counter
SET reserved = counter.reserved - given.amount, updated_at = now()
FROM (SELECT counter_id, sum(amount) AS amount FROM released GROUP BY counter_id) AS given
WHERE counter.id = given.counter_id
"""


def _reserve(applying: Sequence[ApplicableBudget], asked: Spending, holder_id: UUID) -> None:
    """Reserve for each budget. Raises RateLimited; then nothing is held."""
    now = timezone.now()
    with transaction.atomic():
        counted = change_counters(applying, now, reserved=asked)
        over = [each for each in applying if _is_over(counted[each.budget_id], each)]
        if over:
            last = max(over, key=lambda each: each.period)  # a month ends after its days
            spent = counted[last.budget_id].used + asked.of(last.unit)
            is_only_held = spent <= last.limit
            if not is_only_held:
                note_refusal(last)
            raise refusal(last, is_only_held=is_only_held, now=now)
        BudgetReservation.objects.bulk_create(
            BudgetReservation(
                counter_id=counted[each.budget_id].pk,
                holder_id=holder_id,
                amount=asked.of(each.unit),
            )
            for each in applying
        )


def _is_over(counter: CounterAmounts, budget: ApplicableBudget) -> bool:
    return counter.used + counter.reserved > budget.limit
