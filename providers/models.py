"""Store providers and what their models can do, the ledger of every call, and budgets.

Providers and models are platform-wide and created by operators. Keys are encrypted
(`amber.lib.secrets`).
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.contrib.postgres.indexes import BrinIndex
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q, Sum
from django.utils.translation import gettext_lazy as _

from accounts.models import User, made_with
from accounts.principal import Principal
from accounts.tenant_rows import TenantQuerySet, TenantRow
from amber.lib.database.rows import Row, second_of
from amber.lib.ids import least_id_at
from engine.provider.dialects import DIALECTS
from providers.parameter_checks import check_parameter_names, check_parameters
from providers.presets import PRESETS

OFFLINE_URL = "offline:"
"""The `base_url` of the built-in provider, which needs no network."""

AUTO_ALIAS = "auto"
"""Stands for the default model, or the default vision model when the context holds an image."""


class Provider(Row):
    """A service that models are reached at. The encrypted columns are bound to this row. Only
    `providers.registry` and `providers.services` decrypt them.

    `preset` is a name in `providers.presets`, or blank. `environment_sealed` holds what the environment
    said when it last created or changed this row; it is blank for providers made by hand.
    """

    name = models.CharField(max_length=120, unique=True)
    base_url = models.CharField(
        max_length=500, help_text=f"For example https://api.example/v1, or {OFFLINE_URL}"
    )
    preset = models.CharField(
        max_length=12,
        blank=True,
        default="",
        choices=[(name, preset.label) for name, preset in PRESETS.items()],
    )
    api_key_sealed = models.TextField(blank=True, default="", editable=False)
    environment_sealed = models.TextField(blank=True, default="", editable=False)

    def __str__(self) -> str:
        return self.name

    @property
    def is_offline(self) -> bool:
        return self.base_url == OFFLINE_URL


class SystemPosition(models.TextChoices):
    FIRST = "first"
    LAST = "last"
    ONLY_FIRST = "only_first"


class LanguageModel(Row):
    """A chat model under the alias that clients use. Prices are per million tokens.

    With `price_cached` None, cached tokens cost as much as other prompt tokens. The columns of
    parameters are `engine.provider.model.ParameterRules`.
    """

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="models")
    alias = models.CharField(max_length=120, unique=True)
    upstream_id = models.CharField(max_length=200)
    context_tokens = models.PositiveIntegerField(
        default=128_000, validators=[MinValueValidator(512)]
    )
    max_output_tokens = models.PositiveIntegerField(default=4_096)
    vision = models.BooleanField(default=False)
    encoding = models.CharField(max_length=40, default="o200k_base")
    tool_dialect = models.CharField(
        max_length=12, choices=[(name, name.title()) for name in DIALECTS], default="tools"
    )
    system_position = models.CharField(
        max_length=12, choices=SystemPosition.choices, default=SystemPosition.FIRST
    )
    allowed_parameters = models.JSONField(
        default=list, blank=True, validators=[check_parameter_names]
    )
    extra_parameters = models.JSONField(default=dict, blank=True, validators=[check_parameters])
    forced_parameters = models.JSONField(default=dict, blank=True, validators=[check_parameters])
    price_in = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    price_out = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    price_cached = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    enabled = models.BooleanField(default=True)
    default = models.BooleanField(default=False)
    default_vision = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["default"], condition=Q(default=True), name="one_default_model"
            ),
            models.UniqueConstraint(
                fields=["default_vision"],
                condition=Q(default_vision=True),
                name="one_default_vision_model",
            ),
            models.CheckConstraint(
                condition=~Q(alias__in=["", AUTO_ALIAS]) & ~Q(alias__startswith="assistant:"),
                name="alias_not_reserved",
            ),
        ]

    def __str__(self) -> str:
        return self.alias

    def clean(self) -> None:
        """Take a field of a form that was emptied for one that says nothing."""
        super().clean()
        self.allowed_parameters = self.allowed_parameters or []
        self.extra_parameters = self.extra_parameters or {}
        self.forced_parameters = self.forced_parameters or {}


class EmbeddingModel(Row):
    """A model that turns texts into vectors. `dimensions` is fixed once vectors exist.

    It is at most 4,000, as a halfvec HNSW index of pgvector takes no more.
    """

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="embedding_models"
    )
    alias = models.CharField(max_length=120, unique=True)
    upstream_id = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField(default=1_536)
    max_input_tokens = models.PositiveIntegerField(default=8_191)
    encoding = models.CharField(max_length=40, default="cl100k_base")
    price_in = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    enabled = models.BooleanField(default=True)
    default = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["default"], condition=Q(default=True), name="one_default_embedding_model"
            ),
            models.CheckConstraint(
                condition=Q(dimensions__gte=1, dimensions__lte=4_000), name="dimensions_indexable"
            ),
            # `DocumentChunk` refers to these two, so that its vectors have the model's size.
            models.UniqueConstraint(fields=["id", "dimensions"], name="embedding_model_size"),
        ]

    def __str__(self) -> str:
        return self.alias


class UsageKind(models.TextChoices):
    CHAT = "chat"
    EMBEDDING = "embedding"
    SPEECH = "speech"
    RERANK = "rerank"


_CLOCKS: Final = timedelta(hours=1)
"""How far the id and `created_at` of one call may lie apart."""


def made_between(since: datetime | None, until: datetime | None) -> Q:
    """Return the condition for calls from `since` to before `until`; None is no bound.

    It bounds the ids, too: Postgres then looks only into the partitions that can hold such calls.
    """
    wanted = Q()
    if since is not None:
        wanted &= Q(created_at__gte=since, pk__gte=least_id_at(since - _CLOCKS))
    if until is not None:
        wanted &= Q(created_at__lt=until, pk__lt=least_id_at(until + _CLOCKS))
    return wanted


class UsageQuerySet(TenantQuerySet):
    """Shows admins the organization's usage, others their own, and a bound key its own."""

    @staticmethod
    def sum_used(unit: str) -> Sum:
        """Return the sum of what rows have used of budgets in this unit."""
        tokens = F("prompt_tokens") + F("completion_tokens")
        return Sum(tokens if unit == BudgetUnit.TOKENS else F("cost"))

    def _seen_by(self, principal: Principal) -> Q:
        if principal.user_id is None:
            return Q(pk__in=[])
        if principal.is_admin:
            return Q()
        return Q(user_id=principal.user_id) & made_with(principal)

    def _written_by(self, principal: Principal) -> Q:
        return Q(pk__in=[])


class UsageRecord(TenantRow):
    """One call of a provider: who made it, what for, how much it used and how it went.

    `outcome` is "ok", "cancelled", "released", "lost" or the provider error's code. `assistant_id`,
    `turn_id` and `api_key_id` are plain ids: the ledger outlives what it counts. `cost` is in the
    currency of the prices.
    """

    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    api_key_id = models.UUIDField(null=True)
    guest_id = models.CharField(max_length=200, null=True)
    assistant_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=10, choices=UsageKind.choices, default=UsageKind.CHAT)
    model = models.CharField(max_length=120)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0, db_default=0)
    estimated = models.BooleanField(
        default=False, help_text="The provider did not count; Amber did."
    )
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    first_token_ms = models.PositiveIntegerField(null=True)
    latency_ms = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=40, default="ok")

    objects = UsageQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["organization", "-created_at"], name="usage_org_time"),
            models.Index(fields=["user", "-created_at"], name="usage_user_time"),
            models.Index(fields=["turn_id"], name="usage_turn"),
            # For operators' sums over all tenants; BRIN suits rows that lie in the order of time.
            BrinIndex(fields=["created_at"], name="usage_time"),
        ]

    def __str__(self) -> str:
        return f"{self.model}, {second_of(self.created_at)}"


class BudgetPeriod(models.TextChoices):
    DAY = "day"
    MONTH = "month"


class BudgetUnit(models.TextChoices):
    TOKENS = "tokens"
    MONEY = "money"


class BudgetScope(models.TextChoices):
    ORGANIZATION = "organization"
    USER = "user"
    KEY = "key"
    ASSISTANT = "assistant"
    GUEST = "guest"


class BudgetQuerySet(UsageQuerySet):
    """Shows budgets to admins, who alone may change them."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else Q(pk__in=[])

    def _written_by(self, principal: Principal) -> Q:
        return self._seen_by(principal) & Q(by_operator=False)


class Budget(TenantRow):
    """A limit per day or month (UTC). `subject` is the id of what `scope` names; blank: each one.

    A key's id is that of the first key it was rotated from. `assistant_id` narrows a budget of
    guests to those of one assistant. Only operators change a budget that is `by_operator`. Of several
    budgets that differ only in these two, the narrowest counts.
    """

    scope = models.CharField(max_length=12, choices=BudgetScope.choices)
    subject = models.CharField(max_length=200, blank=True, default="")
    assistant_id = models.UUIDField(null=True, blank=True)
    period = models.CharField(max_length=5, choices=BudgetPeriod.choices)
    unit = models.CharField(max_length=6, choices=BudgetUnit.choices)
    limit = models.DecimalField(
        max_digits=20, decimal_places=8, validators=[MinValueValidator(Decimal(0))]
    )

    by_operator = models.BooleanField(
        default=False,
        db_default=False,
        verbose_name=_("kept by operators"),
        help_text=_("The organization sees this budget, but cannot change or delete it."),
    )

    objects = BudgetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "scope", "subject", "assistant_id", "period", "unit"],
                nulls_distinct=False,
                name="one_budget",
            ),
            models.CheckConstraint(
                condition=Q(assistant_id__isnull=True) | Q(scope="guest"),
                name="budget_of_guests_by_assistant",
            ),
            models.CheckConstraint(
                condition=~Q(scope="organization") | Q(subject=""),
                name="budget_of_the_organization",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.limit.normalize():,f} {self.unit} a {self.period} ({self.scope})"


class BudgetCounter(Row):
    """Counts what one subject of a budget has used and reserved since `period_start`.

    The database does not enforce the foreign key: deleting a budget must not make counting fail.
    """

    budget = models.ForeignKey(
        Budget, on_delete=models.CASCADE, db_constraint=False, related_name="counters"
    )
    subject = models.CharField(max_length=200, blank=True, default="")
    period_start = models.DateField()
    used = models.DecimalField(max_digits=20, decimal_places=8, default=0)
    reserved = models.DecimalField(max_digits=20, decimal_places=8, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "period_start"], name="one_budget_counter"
            ),
        ]
        indexes = [models.Index(fields=["period_start"], name="budget_counter_age")]

    def __str__(self) -> str:
        return f"{self.used.normalize():,f} used since {self.period_start}"


class BudgetReservation(Row):
    """An amount of a counter that its holder, usually a turn, may still use."""

    counter = models.ForeignKey(
        BudgetCounter, on_delete=models.CASCADE, db_constraint=False, related_name="reservations"
    )
    holder_id = models.UUIDField()
    amount = models.DecimalField(max_digits=20, decimal_places=8)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["holder_id", "counter"], name="one_reservation"),
        ]
        indexes = [models.Index(fields=["created_at"], name="reservation_age")]

    def __str__(self) -> str:
        return f"{self.amount.normalize():,f} reserved"
