"""Define the wire form of budgets; amounts are decimals, written as strings."""

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
from providers.budgets.scopes import ID_SCOPES, NAMED_SCOPES
from providers.models import Budget, BudgetCounter, BudgetPeriod, BudgetScope, BudgetUnit

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


def _list_in_words(scopes: Sequence[str]) -> str:
    *first, last = scopes
    return f"{', '.join(first)} or {last}"


class BudgetSerializer(serializers.ModelSerializer[Budget]):
    used = _amount(
        allow_null=True,
        read_only=True,
        help_text="Used in the current period. Null if the budget applies to each separately.",
    )
    reserved = _amount(
        allow_null=True, read_only=True, help_text="Reserved by answers in progress."
    )
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
            "by_operator",
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
        help_text=f"The id of the {_list_in_words(NAMED_SCOPES)}. If omitted, the budget applies to "
        "each of them separately.",
    )
    assistant_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="Limits a budget for guests to the guests of this assistant.",
    )
    period = serializers.ChoiceField(choices=BudgetPeriod.choices)
    unit = serializers.ChoiceField(choices=BudgetUnit.choices)
    limit = _amount(min_value=Decimal(0))

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        scope, subject = attrs["scope"], attrs.get("subject", "")
        if attrs.get("assistant_id") and scope != BudgetScope.GUEST:
            raise serializers.ValidationError(
                {"assistant_id": "Only a budget for guests can name an assistant."}
            )
        if subject and scope not in NAMED_SCOPES:
            raise serializers.ValidationError(
                {"subject": "A budget for the organization has no subject. Leave it out."}
            )
        if subject and scope in ID_SCOPES:
            attrs["subject"] = _as_id(subject)
        return attrs


class BudgetChangesSerializer(serializers.Serializer[Any]):
    limit = _amount(min_value=Decimal(0))


def budgets_to_wire(budgets: Sequence[Budget]) -> list[Any]:
    """Return budgets with what is used and reserved in their current periods. One query."""
    now = timezone.now()
    counters = counters_of(budgets, now)
    return [_budget_to_wire(budget, counters.get(budget.pk), now) for budget in budgets]


def _budget_to_wire(budget: Any, counter: BudgetCounter | None, now: datetime) -> Any:
    is_of_one = budget.subject or budget.scope not in NAMED_SCOPES
    nothing = Decimal(0) if is_of_one else None
    budget.used = counter.used if counter else nothing
    budget.reserved = counter.reserved if counter else nothing
    budget.resets_at = period_end(budget.period, now)
    return BudgetSerializer(budget).data


def _as_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise serializers.ValidationError(
            {"subject": f"Must be the id of the {_list_in_words(ID_SCOPES)}."}
        ) from None
