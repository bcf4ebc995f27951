"""Show operators assistants with their grants, tools and scene prompts, and let them try one."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse
from rest_framework.exceptions import ValidationError
from unfold.admin import StackedInline, TabularInline
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.api.serializers import browser_origin
from accounts.audit.actors import operator_of
from amber.lib.errors import Invalid
from amber.lib.operator_pages import PagedAdmin
from assistants import services
from assistants.models import MAX_QUESTIONS, Assistant, AssistantGrant, AssistantTool, ScenePrompt
from assistants.slugs import looks_like_id
from providers.registry import is_known_alias

TRY_ROUTE = "admin:chats_try_assistant"
"""Takes the assistant's id. The app `chats`, which this one may not import, serves the route."""


class AssistantForm(forms.ModelForm[Assistant]):
    """Refuses rows of another organization, and values that no turn could use."""

    suggested_questions = SimpleArrayField(  # questions have commas
        forms.CharField(max_length=300),
        delimiter="\n",
        max_length=MAX_QUESTIONS,
        required=False,
        widget=UnfoldAdminTextareaWidget,
        help_text="Offered in an empty chat, one a line.",
    )

    class Meta:
        model = Assistant
        fields = "__all__"  # noqa: DJ007  # the page names its fields

    def clean_model(self) -> str:
        alias: str = self.cleaned_data["model"]
        if alias != self.initial.get("model") and not is_known_alias(alias):
            raise forms.ValidationError("No enabled model has this alias.")
        return alias

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if looks_like_id(slug):
            raise forms.ValidationError("A slug must not look like an id.")
        return slug

    def clean_disabled_builtin_tools(self) -> list[str]:
        names: list[str] = self.cleaned_data["disabled_builtin_tools"]
        try:
            services.check_builtin_tools(names, kept=self.instance.disabled_builtin_tools)
        except Invalid as error:
            raise forms.ValidationError(error.message)
        return names

    def clean_public_origins(self) -> list[str]:
        """Write origins as browsers do: any other form would never match."""
        try:
            return [browser_origin(text) for text in self.cleaned_data["public_origins"]]
        except ValidationError as error:
            raise forms.ValidationError([str(said) for said in error.detail])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        library = cleaned.get("library")
        if library is not None and library.organization_id != _organization_id(self):
            self.add_error("library", "This library belongs to another organization.")
        return cleaned


class BindingForm(forms.ModelForm[AssistantTool]):
    def clean_tool(self) -> Any:
        tool = self.cleaned_data["tool"]
        assistant = self.instance.assistant
        if tool.organization_id != assistant.organization_id:
            raise forms.ValidationError("This tool belongs to another organization.")
        return tool


class BindingInline(TabularInline):
    model = AssistantTool
    form = BindingForm
    fields = ("tool", "functions")
    raw_id_fields: ClassVar[tuple[str, ...]] = ("tool",)
    extra = 0


class AssistantGrantForm(forms.ModelForm[AssistantGrant]):
    def clean_group(self) -> Any:
        group = self.cleaned_data["group"]
        # The assistant itself may be new: the row could not read it yet.
        assistant: Any = self.fields["assistant"]
        if group.organization_id != assistant.parent_instance.organization_id:
            raise forms.ValidationError("This group belongs to another organization.")
        return group


class AssistantGrantInline(TabularInline):
    model = AssistantGrant
    form = AssistantGrantForm
    fields = ("group", "right")
    raw_id_fields: ClassVar[tuple[str, ...]] = ("group",)
    extra = 0


class ScenePromptInline(StackedInline):
    model = ScenePrompt
    fields = ("label", "prompt", "examples", "temperature", "top_p")
    extra = 0


@admin.register(Assistant)
class AssistantAdmin(PagedAdmin):
    form = AssistantForm
    inlines = (AssistantGrantInline, BindingInline, ScenePromptInline)
    list_display = (
        "name",
        "slug",
        "organization",
        "user",
        "model",
        "shared",
        "public",
        "total_token_usage",
    )
    list_filter = ("shared", "public")
    list_select_related = ("organization", "user")
    search_fields = ("name", "slug")
    fields = (
        "organization",
        "user",
        "name",
        "slug",
        "description",
        "greeting",
        "suggested_questions",
        "prompt",
        "model",
        ("temperature", "top_p"),
        "library",
        ("shared", "public"),
        ("public_origins", "guest_files"),
        ("disable_default_prompt", "disable_web_browsing", "disable_memory"),
        "enable_memory_for_assistant_api",
        ("disabled_builtin_tools", "untrusted_calls"),
        "hide_reasoning",
        "total_token_usage",
    )
    raw_id_fields: ClassVar[tuple[str, ...]] = ("organization", "user", "library")
    readonly_fields = ("total_token_usage",)
    help_texts: ClassVar[dict[str, str]] = {
        "slug": "Programs call it assistant:slug. Unique in the organization.",
        "greeting": "What an empty chat says first. The model does not read it.",
        "model": "The alias of a language model. Empty or auto: the default model.",
        "temperature": "From 0 to 2. Empty: the provider's default.",
        "top_p": "From 0 to 1. Empty: the provider's default.",
        "library": "Searched for every question.",
        "shared": "All members of the organization can use it.",
        "public": "Anyone can use it, without an account.",
        "public_origins": "Sites it can be used from, such as https://example.com, separated by "
        "commas. Empty: any site.",
        "guest_files": "Guests can send files.",
        "enable_memory_for_assistant_api": "Use memory for API keys and guests too.",
        "disabled_builtin_tools": "Names of built-in tools, separated by commas.",
        "untrusted_calls": "Calls that could do harm, once a turn has read documents, pages, files or "
        "results of tools.",
        "hide_reasoning": "Nobody is shown what the model thinks before it answers.",
    }
    actions_detail = ("try_it",)
    actions = ("dismiss_guests",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Fix the organization: an assistant does not move to another tenant."""
        return (*self.readonly_fields, "organization") if obj else self.readonly_fields

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Give inline rows the organization of their assistant."""
        for row in formset.save(commit=False):
            row.organization_id = form.instance.organization_id
            row.save()
        for row in formset.deleted_objects:
            row.delete()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Save inner rows, and tell the audit log whom the assistant was opened to."""
        super().save_related(request, form, formsets, change)
        before = form.initial if change else {}
        services.record_visibility(
            operator_of(request),
            form.instance,
            was_shared=bool(before.get("shared")),
            was_public=bool(before.get("public")),
        )

    @admin.action(description="Sign out all guests", permissions=["change"])
    def dismiss_guests(self, request: HttpRequest, queryset: QuerySet[Assistant]) -> None:
        for assistant in queryset:
            services.dismiss_guests(assistant)
        messages.success(request, "Guests of these assistants need a new token.")

    @action(description="Try it", permissions=["try_it"])
    def try_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(_try_address(object_id) or "..")

    def has_try_it_permission(self, request: HttpRequest, object_id: str) -> bool:
        return self.has_view_permission(request) and bool(_try_address(object_id))


def _try_address(assistant_id: str) -> str:
    """Return the address of the page, empty while no app serves the route."""
    try:
        return reverse(TRY_ROUTE, args=[assistant_id])
    except NoReverseMatch:
        return ""


def _organization_id(form: forms.ModelForm[Assistant]) -> Any:
    """Return the organization that was chosen, or the row's if the form does not ask for one."""
    chosen: Model | None = form.cleaned_data.get("organization")
    return form.instance.organization_id if chosen is None else chosen.pk
