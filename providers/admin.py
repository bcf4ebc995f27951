"""Show operators the providers, models, embedding models, ledger and budgets.

A key can be entered but is never shown. Forms save plain rows; what must stay consistent (which
model is the default) is an action that calls one service.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminSelectWidget

from amber.lib.errors import AmberError
from amber.lib.operator_pages import OperatorAdmin, ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import (
    NOTHING,
    write_milliseconds,
    write_money,
    write_names,
    write_number,
    write_state,
)
from amber.lib.operator_pages.columns import Reference, reference_of
from amber.lib.operator_pages.states import Tone
from amber.lib.secrets import DecryptError, encrypt_column
from engine.provider.client import is_sendable
from engine.provider.model import ProviderError
from providers import services
from providers.budgets import reservations
from providers.budgets.counters import annotate_used, open_counters
from providers.budgets.operator_form import FIELDS_OF, BudgetForm
from providers.budgets.scopes import SCOPES
from providers.models import (
    OFFLINE_URL,
    Budget,
    BudgetUnit,
    EmbeddingModel,
    LanguageModel,
    Provider,
    UsageRecord,
)
from providers.presets import OTHER, PLACEHOLDER, PRESETS, preset_of
from providers.setup.checks import check_models, models_to_check
from providers.setup.listing import ListedUpstream, list_upstream, measure
from providers.usage.operator_page import usage_page

_OF_ALL_MODELS: Final = {
    "alias": _("The name that people and programs use. It can be pointed at another model later."),
    "upstream_id": _("The provider's own name for the model, such as gpt-4o-mini."),
    "encoding": _("The tiktoken encoding that counts its tokens."),
    "price_in": _("Price of a million prompt tokens, in AMBER_CURRENCY."),
}
UPSTREAM_MODELS: Final = "admin/providers/upstream_models.html"
TEST: Final = "admin/providers/test_provider.html"
_UNREADABLE_KEY: Final = _("The stored key cannot be decrypted. Enter it again.")


class ProviderForm(forms.ModelForm[Provider]):
    """Asks for a key and, of a provider with a preset, for nothing else."""

    preset = forms.ChoiceField(
        required=False,
        label=_("Kind"),
        choices=[("", _(OTHER.label)), *((name, each.label) for name, each in PRESETS.items())],
        widget=UnfoldAdminSelectWidget,
        help_text=_(
            "Fills in the name and the address if they are left empty, and how the models "
            "that you add are spoken to."
        ),
    )
    api_key = forms.CharField(
        required=False,
        strip=True,
        label=_("API key"),
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and never shown. Leave empty to keep the current key."),
    )
    forget_api_key = forms.BooleanField(
        required=False,
        label=_("Forget the API key"),
        help_text=_("For providers that need no key, such as Ollama."),
    )

    class Meta:
        model = Provider
        fields = ["preset", "name", "base_url"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].required = self.fields["base_url"].required = False

    def clean(self) -> None:
        """Fill in what the preset knows, and say what is still missing."""
        super().clean()
        given = self.cleaned_data
        preset = preset_of(given.get("preset", ""))
        given["name"] = given.get("name") or (preset.label if preset is not OTHER else "")
        given["base_url"] = (given.get("base_url") or preset.base_url).strip().rstrip("/")
        if not given["name"]:
            self.add_error("name", _("Enter a name."))
        if problem := _address_problem(given["base_url"]):
            self.add_error("base_url", problem)
        has_key = given.get("api_key") or self.instance.api_key_sealed
        if preset.needs_key and (not has_key or given.get("forget_api_key")):
            self.add_error("api_key", gettext("%(name)s needs a key.") % {"name": preset.label})
        if not is_sendable(given.get("api_key", "")):
            self.add_error("api_key", _("A key has no such characters. Copy the whole key."))


def _address_problem(base_url: str) -> str:
    if PLACEHOLDER in base_url:
        told = gettext("Put the name of your own resource in place of %(place)s: %(address)s")
        return told % {"place": PLACEHOLDER, "address": base_url}
    if base_url != OFFLINE_URL and not base_url.startswith(("http://", "https://")):
        return gettext("Enter an address such as https://host/v1, or %s") % OFFLINE_URL
    return ""


@admin.register(Provider)
class ProviderAdmin(OperatorAdmin):
    """Sets a provider up: its key, then its models, then a real question."""

    form = ProviderForm
    list_display = ("name", "preset", "base_url", "has_key", "updated_at")
    search_fields = ("name", "base_url", "=id")
    actions_detail: ClassVar[list[str]] = ["upstream_models", "test"]

    @admin.display(boolean=True, description=_("Key"))
    def has_key(self, provider: Provider) -> bool:
        return bool(provider.api_key_sealed)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if form.cleaned_data["api_key"]:
            encrypt_column(obj, "api_key", form.cleaned_data["api_key"])
        elif form.cleaned_data["forget_api_key"]:
            encrypt_column(obj, "api_key", "")
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Go on to the models of a provider that has a list of them."""
        shown = super().response_add(request, obj, *args, **kwargs)
        goes_on = obj.preset and not {"_continue", "_addanother", "_popup"} & request.POST.keys()
        return _to_page("upstream_models", obj) if goes_on else shown

    @action(description=_("Models"), url_path="models", permissions=["change"])
    def upstream_models(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """List what the provider has, and add what was chosen (POST)."""
        provider = self.find_row(request, object_id)
        page = self._page_of(request, provider, gettext("Models"))
        try:
            page["listed"] = listed = list_upstream(provider)
            if request.method == "POST":
                added = self._add_models(request, provider, listed)
                return _to_page("test" if added else "upstream_models", provider)
        except (AmberError, ProviderError) as error:
            page["problem"] = error.message
        except DecryptError:
            page["problem"] = _UNREADABLE_KEY
        return TemplateResponse(request, UPSTREAM_MODELS, page)

    def _add_models(
        self, request: HttpRequest, provider: Provider, listed: Sequence[ListedUpstream]
    ) -> bool:
        chosen = set(request.POST.getlist("chosen"))
        wanted = [each.model for each in listed if each.model.upstream_id in chosen]
        rows = services.add_models(provider, measure(provider, wanted))
        for row in rows:
            self.log_addition(request, row, [{"added": {}}])
        names = ", ".join(row.alias for row in rows)
        self.message_user(
            request,
            gettext("Added: %(names)s.") % {"names": names}
            if rows
            else gettext("Choose at least one model."),
            messages.SUCCESS if rows else messages.WARNING,
        )
        return bool(rows)

    @action(description=_("Test"), url_path="test", permissions=["change"])
    def test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Offer the test, and run it (POST): it costs tokens."""
        provider = self.find_row(request, object_id)
        page = self._page_of(request, provider, gettext("Test"))
        page["alias"] = alias = request.POST.get("alias", "")
        page["aliases"] = [
            *provider.models.order_by("alias").values_list("alias", flat=True),
            *provider.embedding_models.order_by("alias").values_list("alias", flat=True),
        ]
        if request.method == "POST":
            self.log_change(request, provider, [{"changed": {"name": "test", "object": alias}}])
            try:
                page["results"] = check_models(*models_to_check(provider, alias))
            except DecryptError:
                page["problem"] = _UNREADABLE_KEY
        return TemplateResponse(request, TEST, page)

    def _page_of(self, request: HttpRequest, provider: Provider, verb: str) -> dict[str, Any]:
        advice = preset_of(provider.preset).advice
        return {
            **self.admin_site.each_context(request),
            "title": f"{provider.name}: {verb}",
            "provider": provider,
            "advice": advice and gettext(advice),
        }


def _to_page(name: str, provider: Provider) -> HttpResponse:
    return redirect(f"admin:providers_provider_{name}", object_id=provider.pk)


class _ModelAdmin(OperatorAdmin):
    list_select_related = ("provider",)
    search_fields = ("alias", "upstream_id", "=id")

    @admin.display(description=_("state"), ordering="enabled")
    def state(self, model: LanguageModel | EmbeddingModel) -> Any:
        return write_state("active" if model.enabled else "disabled")


@admin.register(LanguageModel)
class LanguageModelAdmin(_ModelAdmin):
    list_display = (
        "alias",
        "state",
        "provider",
        "upstream_id",
        "default",
        "default_vision",
        "vision",
        "context_tokens",
        "prices",
    )
    list_filter = ("enabled", "vision")
    readonly_fields = ("default", "default_vision")
    help_texts: ClassVar[dict[str, Any]] = {
        **_OF_ALL_MODELS,
        "context_tokens": _("Prompt and answer together. Lower this for small models."),
        "max_output_tokens": _("Tokens reserved for the answer."),
        "vision": _("The model accepts images."),
        "tool_dialect": _(
            "Functions is the older form: one call at a time. Anthropic and responses are "
            "APIs of their own. See docs/providers.md."
        ),
        "system_position": _(
            "First suits providers' caches; last suits models that follow the end "
            "of a prompt more closely."
        ),
        "allowed_parameters": _(
            "A list of names. Other optional parameters are not sent. Empty: all "
            "are. max_completion_tokens without max_tokens sends the limit under that name."
        ),
        "extra_parameters": _(
            'Sent unless the request says otherwise: {"reasoning_effort": "low"}.'
        ),
        "forced_parameters": _(
            'Sent whatever the request says: {"temperature": 1}. null: never sent.'
        ),
        "price_out": _("Price of a million completion tokens."),
        "price_cached": _("Price of a million cached prompt tokens. Empty: the same as price in."),
    }
    actions = ("make_default", "make_default_vision")

    @admin.display(description=_("prices in, out"))
    def prices(self, model: LanguageModel) -> str:
        """Say what a million tokens cost, of those that are read and those that are written."""
        is_free = not model.price_in and not model.price_out
        both = f"{write_money(model.price_in)} / {write_money(model.price_out)}"
        return NOTHING if is_free else both

    @admin.action(description=_("Make this the default model"), permissions=["change"])
    def make_default(self, request: HttpRequest, chosen: QuerySet[LanguageModel]) -> None:
        _run_on_one(self, request, chosen, services.make_default)

    @admin.action(description=_("Make this the default model for images"), permissions=["change"])
    def make_default_vision(self, request: HttpRequest, chosen: QuerySet[LanguageModel]) -> None:
        _run_on_one(self, request, chosen, services.make_default_vision)


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(_ModelAdmin):
    list_display = ("alias", "state", "provider", "upstream_id", "dimensions", "default")
    readonly_fields = ("default",)
    help_texts: ClassVar[dict[str, Any]] = {
        **_OF_ALL_MODELS,
        "dimensions": _(
            "The length of its vectors. It cannot be changed later: add a model instead."
        ),
        "max_input_tokens": _("Only the beginning of a longer text is embedded."),
    }
    actions = ("make_default",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fix `dimensions` once the row exists: vectors of another length need another model."""
        fixed = (*self.readonly_fields, "dimensions") if obj else self.readonly_fields
        return self.columns_of_form(fixed)

    @admin.action(description=_("Make this the default for new libraries"), permissions=["change"])
    def make_default(self, request: HttpRequest, chosen: QuerySet[EmbeddingModel]) -> None:
        _run_on_one(self, request, chosen, services.make_default)


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    """Shows the ledger read-only; turns and ingestion write it."""

    list_display = (
        "created_at",
        "outcome_badge",
        "kind",
        "model",
        "belongs_to",
        "tokens",
        "costs",
        "duration",
    )
    list_filter = (BY_ORGANIZATION, "kind", "estimated")
    list_select_related = ("organization", "user")
    search_fields = ("=id", "=turn_id", "=user__email", "=organization__slug", "=model")
    references: ClassVar[dict[str, Reference]] = {
        "api_key_id": "accounts.ApiKey",
        "assistant_id": "assistants.Assistant",
        "turn_id": "chats.Turn",
    }
    shows_seconds = True
    fields = (
        "created_at",
        "organization",
        "user",
        "guest_id",
        "api_key_id",
        "assistant_id",
        "turn_id",
        "kind",
        "model",
        "outcome_badge",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "reasoning_tokens",
        "estimated",
        "costs",
        "first_token",
        "duration",
    )
    actions_list: ClassVar[list[str]] = ["report"]

    @admin.display(description=_("outcome"), ordering="outcome")
    def outcome_badge(self, record: UsageRecord) -> Any:
        """Show how the call ended; what is no state is an error's code."""
        return write_state(record.outcome, otherwise=Tone.BAD)

    @admin.display(description=_("tokens"), ordering="prompt_tokens")
    def tokens(self, record: UsageRecord) -> Any:
        """Say how many tokens were read and written."""
        written = write_number(record.completion_tokens)
        read = gettext("%s in") % write_number(record.prompt_tokens)
        return write_names(read, gettext("%s out") % written if record.completion_tokens else "")

    @admin.display(description=_("cost"), ordering="cost")
    def costs(self, record: UsageRecord) -> str:
        return write_money(record.cost)

    @admin.display(description=_("first token"))
    def first_token(self, record: UsageRecord) -> str:
        return write_milliseconds(record.first_token_ms)

    @admin.display(description=_("took"), ordering="latency_ms")
    def duration(self, record: UsageRecord) -> str:
        return write_milliseconds(record.latency_ms)

    @action(description=_("Charts and CSV"), url_path="report", permissions=["view"])
    def report(self, request: HttpRequest) -> HttpResponse:
        """Show charts and tables of what all organizations used, or one of them."""
        return usage_page(request, self.admin_site.each_context(request))


_FIELDS_OF_SUBJECTS: Final = tuple(dict.fromkeys(chain.from_iterable(FIELDS_OF.values())))


@admin.register(Budget)
class BudgetAdmin(OperatorAdmin):
    """Lets operators change a budget's limit, but never whom it is for."""

    form = BudgetForm
    list_display = ("of_whom", "limit_in_unit", "used_amount", "period", "organization")
    list_filter = (BY_ORGANIZATION, "scope", "unit", "period")
    list_select_related = ("organization",)
    search_fields = ("organization__name", "=organization__slug", "=subject", "=id")
    autocomplete_fields: ClassVar[tuple[str, ...]] = ("organization",)
    references: ClassVar[dict[str, Reference]] = {
        "subject": lambda budget: SCOPES[budget.scope].model,
        "assistant_id": "assistants.Assistant",
    }
    conditional_fields: ClassVar[dict[str, str]] = {
        name: " || ".join(
            f"scope == '{scope}'" for scope, asked in FIELDS_OF.items() if name in asked
        )
        for name in _FIELDS_OF_SUBJECTS
    }
    help_texts: ClassVar[dict[str, Any]] = {
        "limit": _("For one period, in the unit above. See docs/budgets.md for what it stops."),
    }

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        who = ("of_whom",) if obj else ("scope", *_FIELDS_OF_SUBJECTS)
        return ("organization", *who, "period", "unit", "limit", "by_operator")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fixed = ("organization", "of_whom", "period", "unit") if obj else ()
        return self.columns_of_form(fixed)

    @admin.display(description=_("for whom"), ordering="scope")
    def of_whom(self, budget: Budget) -> Any:
        """Name the subject, under what kind of subject it is."""
        facts = SCOPES[budget.scope]
        if not budget.subject:
            return facts.each
        named = reference_of(budget, "subject", self.references)
        return write_names(named or f"…{budget.subject[-6:]}", facts.label)

    @admin.display(description=_("limit"), ordering="limit")
    def limit_in_unit(self, budget: Budget) -> str:
        return _in_unit(budget, budget.limit)

    @admin.display(description=_("used in this period"))
    def used_amount(self, budget: Any) -> str:
        if budget.used_now is None:
            return NOTHING
        share = budget.used_now / budget.limit if budget.limit else 1
        return f"{_in_unit(budget, budget.used_now)} ({share:.0%})"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        return annotate_used(super().get_queryset(request))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the budget; a new one counts what was used already."""
        super().save_model(request, obj, form, change)
        if not change:
            open_counters(obj)
        reservations.forget_absence()


def _in_unit(budget: Budget, amount: Decimal) -> str:
    if budget.unit == BudgetUnit.MONEY:
        return write_money(amount)
    return gettext("%(amount)s tokens") % {"amount": write_number(amount)}


def _run_on_one(
    page: OperatorAdmin, request: HttpRequest, chosen: QuerySet[Any], verb: Callable[[Any], Any]
) -> None:
    """Call `verb` with the one chosen row and show its refusal, if it raises one."""
    rows = list(chosen[:2])
    if len(rows) != 1:
        page.message_user(request, _("Choose exactly one model."), messages.ERROR)
        return
    try:
        verb(rows[0])
    except AmberError as error:
        page.message_user(request, error.message, messages.ERROR)
    else:
        told = gettext("%(model)s is now the default.") % {"model": rows[0]}
        page.message_user(request, told, messages.SUCCESS)
