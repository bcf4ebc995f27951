"""Operators' pages: providers, models, embedding models, the ledger, budgets.

Keys go in and never come out. Forms save plain rows; what must stay consistent (which model is
the default) is an action of one service call.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminPasswordWidget

from accounts.models import Organization
from amber.lib.errors import AmberError, Invalid
from amber.lib.operator_pages import OperatorAdmin, ReadOnlyAdmin
from providers import services
from providers.budgets import reservations
from providers.budgets import services as budget_services
from providers.budgets.counters import open_counters, with_used
from providers.keys import encrypt_api_key
from providers.models import (
    OFFLINE_URL,
    Budget,
    EmbeddingModel,
    LanguageModel,
    Provider,
    UsageRecord,
)
from providers.usage.chart import chart_of
from providers.usage.report import UsageFilters, sum_by_groups

_OF_ALL_MODELS: Final = {
    "alias": "The name that people and programs use. It can be pointed at another model later.",
    "upstream_id": "The provider's own name of the model, as gpt-4o-mini.",
    "encoding": "How its tokens are counted: a name of tiktoken's.",
    "price_in": "For a million prompt tokens, in the currency you count in.",
}
BY_DAY: Final = "admin/providers/usage_by_day.html"


class ProviderForm(forms.ModelForm[Provider]):
    api_key = forms.CharField(
        required=False,
        strip=True,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Stored encrypted and never shown. Leave empty to keep the key there is.",
    )
    forget_api_key = forms.BooleanField(
        required=False, help_text="For providers that want no key, such as Ollama."
    )

    class Meta:
        model = Provider
        fields = ["name", "base_url"]

    def clean_base_url(self) -> str:
        base_url: str = self.cleaned_data["base_url"].strip().rstrip("/")
        if base_url != OFFLINE_URL and not base_url.startswith(("http://", "https://")):
            raise forms.ValidationError(f"An address like https://host/v1, or {OFFLINE_URL}")
        return base_url


@admin.register(Provider)
class ProviderAdmin(OperatorAdmin):
    form = ProviderForm
    list_display = ("name", "base_url", "has_key", "updated_at")
    search_fields = ("name", "base_url")

    @admin.display(boolean=True, description="Key")
    def has_key(self, provider: Provider) -> bool:
        return bool(provider.api_key_sealed)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if form.cleaned_data["api_key"]:
            encrypt_api_key(obj, form.cleaned_data["api_key"])
        elif form.cleaned_data["forget_api_key"]:
            encrypt_api_key(obj, "")
        super().save_model(request, obj, form, change)


@admin.register(LanguageModel)
class LanguageModelAdmin(OperatorAdmin):
    list_display = (
        "alias",
        "provider",
        "upstream_id",
        "enabled",
        "default",
        "default_vision",
        "vision",
        "context_tokens",
    )
    list_filter = ("enabled", "vision")
    list_select_related = ("provider",)
    search_fields = ("alias", "upstream_id")
    readonly_fields = ("default", "default_vision")
    help_texts: ClassVar[dict[str, str]] = {
        **_OF_ALL_MODELS,
        "context_tokens": "What it reads and writes together. Correct this for small models.",
        "max_output_tokens": "Set aside for the answer.",
        "vision": "It takes images.",
        "tool_dialect": "Functions: the older form, one call at a time. See docs/providers.md.",
        "system_position": "First serves providers' caches. Last for models that heed the end more.",
        "price_out": "For a million completion tokens.",
        "price_cached": "For a million cached prompt tokens; empty: as price in.",
    }
    actions = ("make_default", "make_default_vision")

    @admin.action(description="Make this the default model", permissions=["change"])
    def make_default(self, request: HttpRequest, chosen: QuerySet[LanguageModel]) -> None:
        _make(self, request, chosen, services.make_default)

    @admin.action(description="Make this the default model for images", permissions=["change"])
    def make_default_vision(self, request: HttpRequest, chosen: QuerySet[LanguageModel]) -> None:
        _make(self, request, chosen, services.make_default_vision)


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(OperatorAdmin):
    list_display = ("alias", "provider", "upstream_id", "dimensions", "enabled", "default")
    list_select_related = ("provider",)
    search_fields = ("alias", "upstream_id")
    readonly_fields = ("default",)
    help_texts: ClassVar[dict[str, str]] = {
        **_OF_ALL_MODELS,
        "dimensions": "The length of its vectors. It cannot be changed later: add a model instead.",
        "max_input_tokens": "Of longer texts the beginning is embedded.",
    }
    actions = ("make_default",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Vectors of another length would be another model's: add a model for them."""
        return (*self.readonly_fields, "dimensions") if obj else self.readonly_fields

    @admin.action(description="Make this the default for new libraries", permissions=["change"])
    def make_default(self, request: HttpRequest, chosen: QuerySet[EmbeddingModel]) -> None:
        _make(self, request, chosen, services.make_default_embedding)


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    """Read-only; the ledger is written by turns and ingestion alone."""

    list_display = (
        "created_at",
        "organization",
        "user",
        "kind",
        "model",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "latency_ms",
        "outcome",
    )
    list_filter = ("kind", "estimated")
    list_select_related = ("organization", "user")
    actions_list: ClassVar[list[str]] = ["by_day"]

    @action(description="By day and model", url_path="by-day", permissions=["view"])
    def by_day(self, request: HttpRequest) -> TemplateResponse:
        """A chart and two tables of what all organizations used, or one of them."""
        page = {**self.admin_site.each_context(request), "title": "Usage by day"}
        page["slug"] = slug = request.GET.get("organization", "").strip()
        try:
            filters = UsageFilters.read(request.GET).bounded()
        except Invalid as error:
            page["problem"] = error.message
            return TemplateResponse(request, BY_DAY, page)
        rows = UsageRecord.objects.all()
        if slug:
            rows = rows.filter(organization__in=Organization.objects.filter(slug=slug))
        return TemplateResponse(request, BY_DAY, page | _by_day(filters, rows))


def _by_day(filters: UsageFilters, rows: QuerySet[UsageRecord]) -> dict[str, Any]:
    """Two queries."""
    chosen = filters.applied_to(rows)
    days = sum_by_groups(chosen, ["day"])
    since, until = filters.since, filters.until
    assert since is not None, "they are bounded"
    assert until is not None, "they are bounded"
    return {
        "since": since,
        "until": until,
        "days": days,
        "models": sum_by_groups(chosen, ["model", "kind"]),
        "chart": chart_of(days, since, until),
    }


@admin.register(Budget)
class BudgetAdmin(OperatorAdmin):
    """Whom a budget is for never changes; its limit does."""

    list_display = ("organization", "scope", "subject", "limit", "unit", "period", "used")
    list_filter = ("scope", "unit", "period")
    list_select_related = ("organization",)
    raw_id_fields: ClassVar[tuple[str, ...]] = ("organization",)
    fields = ("organization", "scope", "subject", "assistant_id", "period", "unit", "limit")
    help_texts: ClassVar[dict[str, str]] = {
        "subject": "The id of the user, key, assistant or guest; empty: each of them by itself.",
        "assistant_id": "For guests only: those of one assistant.",
        "limit": "Of a period, in the unit above. docs/budgets.md says what it stops.",
    }

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.fields[:-1] if obj else ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        return with_used(super().get_queryset(request))

    @admin.display(description="Used in this period")
    def used(self, budget: Any) -> str:
        return "" if budget.used_now is None else f"{budget.used_now.normalize():f}"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """A new one counts what was used already."""
        if not change:
            obj.subject = budget_services.subject_of(obj.scope, obj.subject)
        super().save_model(request, obj, form, change)
        if not change:
            open_counters(obj)
        reservations.forget_absence()


def _make(
    page: OperatorAdmin, request: HttpRequest, chosen: QuerySet[Any], verb: Callable[[Any], Any]
) -> None:
    """One row, one verb; a refusal is shown as it is."""
    rows = list(chosen[:2])
    if len(rows) != 1:
        page.message_user(request, "Choose exactly one model.", messages.ERROR)
        return
    try:
        verb(rows[0])
    except AmberError as error:
        page.message_user(request, error.message, messages.ERROR)
    else:
        page.message_user(request, f"{rows[0]} is the default now.", messages.SUCCESS)
