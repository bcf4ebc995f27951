"""The shapes of budgets on the wire; amounts are decimals, as strings."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from providers.budgets.counters import counters_of
from providers.budgets.rules import period_end
from providers.models import Budget, BudgetCounter, BudgetPeriod, BudgetScope, BudgetUnit

_OF_IDS: Final = (BudgetScope.USER, BudgetScope.KEY, BudgetScope.ASSISTANT)

BUDGET_EXAMPLES: Final = [
    OpenApiExample(
        "The whole organization, in money",
        value={"scope": "organization", "period": "month", "unit": "money", "limit": "200"},
        request_only=True,
    ),
    OpenApiExample(
        "Each guest of one assistant",
        value={
            "scope": "guest",
            "assistant_id": "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00",
            "period": "day",
            "unit": "tokens",
            "limit": "20000",
        },
        request_only=True,
    ),
]


def _amount(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=8, **options)


class BudgetSerializer(serializers.ModelSerializer[Budget]):
    used = _amount(allow_null=True, read_only=True, help_text="Null for budgets of each.")
    reserved = _amount(allow_null=True, read_only=True, help_text="By answers under way.")
    resets_at = serializers.DateTimeField(read_only=True)

    class Meta:
        model = Budget
        fields = [
            "id",
            "scope",
            "subject",
            "assistant_id",
            "period",
            "unit",
            "limit",
            "used",
            "reserved",
            "resets_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class NewBudgetSerializer(serializers.Serializer[Any]):
    scope = serializers.ChoiceField(choices=BudgetScope.choices)
    subject = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="The id of the user, key, assistant or guest. Left out: each of them.",
    )
    assistant_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Of guests: those of this assistant only."
    )
    period = serializers.ChoiceField(choices=BudgetPeriod.choices)
    unit = serializers.ChoiceField(choices=BudgetUnit.choices)
    limit = _amount(min_value=Decimal(0))

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        scope, subject = attrs["scope"], attrs.get("subject", "")
        if attrs.get("assistant_id") and scope != BudgetScope.GUEST:
            raise serializers.ValidationError({"assistant_id": "Only for budgets of guests."})
        if subject and scope == BudgetScope.ORGANIZATION:
            raise serializers.ValidationError(
                {"subject": "There is one organization: leave it out."}
            )
        if subject and scope in _OF_IDS:
            attrs["subject"] = _as_id(subject)
        return attrs


class BudgetChangesSerializer(serializers.Serializer[Any]):
    limit = _amount(min_value=Decimal(0))


def budgets_to_wire(budgets: Sequence[Budget]) -> list[Any]:
    """With what is used and reserved in the periods under way. One query."""
    now = timezone.now()
    counters = counters_of(budgets, now)
    return [_budget_to_wire(budget, counters.get(budget.pk), now) for budget in budgets]


def _budget_to_wire(budget: Any, counter: BudgetCounter | None, now: datetime) -> Any:
    is_of_one = budget.subject or budget.scope == BudgetScope.ORGANIZATION
    nothing = Decimal(0) if is_of_one else None
    budget.used = counter.used if counter else nothing
    budget.reserved = counter.reserved if counter else nothing
    budget.resets_at = period_end(budget.period, now)
    return BudgetSerializer(budget).data


def _as_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise serializers.ValidationError({"subject": "The id of what the scope names."}) from None
