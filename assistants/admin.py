"""Show operators assistants with their grants, tools and scene prompts, and let them try one."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _l
from unfold.decorators import action

from accounts.audit.actors import operator_of
from amber.lib.operator_pages import OperatorStackedInline, OperatorTabularInline, PagedAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from assistants import services
from assistants.admin_pages.forms import (
    AssistantForm,
    AssistantGrantForm,
    BindingForm,
    OrganizationChoice,
    OrganizationChoicesView,
    ScenePromptForm,
)
from assistants.admin_pages.tabs import TABS, draw_tabs
from assistants.models import Assistant, AssistantGrant, AssistantTool, ScenePrompt

TRY_ROUTE = "admin:chats_try_assistant"
"""Takes the assistant's id. The app `chats`, which this one may not import, serves the route."""

TRY_TEMPLATE: Final = "admin/chats/conversation.html"
"""The conversation, drawn beside the form where the route is served."""

quality_panels: list[Callable[[Assistant], SafeString]] = []
"""What apps above this one show on the tab "Quality"; they add to it when the admin starts."""


class OfOrganization:
    """Offers rows of the assistant's organization only, once it is known."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        page: Any = self
        if db_field.name in page.autocomplete_fields and db_field.name != "organization":
            found = request.resolver_match
            assistant_id = found.kwargs.get("object_id") if found else None
            kwargs["widget"] = OrganizationChoice(
                db_field, page.admin_site, assistant_id=assistant_id
            )
        parent: Any = super()
        return parent.formfield_for_foreignkey(db_field, request, **kwargs)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Read what the rows refer to with them: the form names it without asking again."""
        parent: Any = super()
        page: Any = self
        return parent.get_queryset(request).select_related(*page.autocomplete_fields)


class BindingInline(OfOrganization, OperatorTabularInline):
    model = AssistantTool
    form = BindingForm
    verbose_name = _l("connected tool")
    verbose_name_plural = _l("connected tools")
    hide_title = True
    fields = ("tool", "functions")
    autocomplete_fields = ("tool",)
    extra = 0


class AssistantGrantInline(OfOrganization, OperatorTabularInline):
    model = AssistantGrant
    form = AssistantGrantForm
    verbose_name = _l("group that may use or edit it")
    verbose_name_plural = _l("groups that may use or edit it")
    hide_title = True
    fields = ("group", "right")
    autocomplete_fields = ("group",)
    extra = 0


class ScenePromptInline(OperatorStackedInline):
    model = ScenePrompt
    form = ScenePromptForm
    fields = ("label", "prompt", "examples", "temperature", "top_p")
    extra = 0


@admin.register(Assistant)
class AssistantAdmin(OfOrganization, PagedAdmin):
    form = AssistantForm
    inlines = (AssistantGrantInline, BindingInline, ScenePromptInline)
    list_display = (
        "name",
        "model",
        "library",
        "shared",
        "public",
        "total_token_usage",
        "belongs_to",
    )
    list_filter = (BY_ORGANIZATION, "shared", "public")
    list_select_related = ("organization", "user", "library")
    search_fields = ("name", "slug", "=id", "=organization__slug")
    fieldsets = tuple(
        (tab.title, {"classes": ("tab",), "fields": tab.fields, "description": tab.words})
        for tab in TABS
    )
    change_form_template = "admin/assistants/assistant_form.html"
    compressed_fields = False  # beside the conversation there is no place for labels
    autocomplete_fields = ("organization", "user", "library")
    readonly_fields = ("tokens_used",)
    help_texts: ClassVar[dict[str, Any]] = {
        "user": _l("Who made it, and may change it."),
        "slug": _l("Programs call it assistant:slug. Unique in the organization."),
        "greeting": _l("What an empty chat says first. The model does not read it."),
        "prompt": _l("What the model is told before every conversation."),
        "disable_default_prompt": _l("Leave out the platform's and the organization's prompts."),
        "temperature": _l("From 0 to 2. Empty: the provider's default."),
        "top_p": _l("From 0 to 1. Empty: the provider's default."),
        "library": _l("Searched for every question."),
        "shared": _l("All members of the organization can use it."),
        "public": _l("Anyone can use it, without an account."),
        "guest_files": _l("Guests can send files."),
        "enable_memory_for_assistant_api": _l("Use memory for API keys and guests too."),
        "untrusted_calls": _l(
            "Calls that could do harm, once a turn has read documents, pages, files or results of "
            "tools."
        ),
        "hide_reasoning": _l("Nobody is shown what the model thinks before it answers."),
    }
    actions_detail = ("try_it",)
    actions = ("dismiss_guests",)

    styles = ("assistants/assistant_form.css", "chats/try.css", "chats/turn_pictures.css")
    scripts = ("assistants/assistant_form.js",)

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        """Make a new assistant's slug of its name; programs know that of an old one."""
        return {} if obj else {"slug": ("name",)}

    def render_change_form(
        self, request: HttpRequest, *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Lay the form on tabs; `args` begin with the page's context."""
        context = args[0]
        tabs = draw_tabs(context["adminform"], context["inline_admin_formsets"])
        context["tabs"] = tabs
        if obj is not None:
            tabs[-1].panels = [panel(obj) for panel in quality_panels]
            has_trial = self.has_try_it_permission(request, str(obj.pk))
            context |= {"assistant": obj, "try_template": TRY_TEMPLATE if has_trial else ""}
        return super().render_change_form(request, *args, obj=obj, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        choices = path(
            "<uuid:assistant_id>/choices/",
            self.admin_site.admin_view(self.offer_choices),
            name="assistants_assistant_choices",
        )
        return [choices, *super().get_urls()]

    def offer_choices(self, request: HttpRequest, assistant_id: Any) -> HttpResponseBase:
        """Answer what a field of the form searches for: rows of the assistant's organization."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        organization_id = get_object_or_404(Assistant, pk=assistant_id).organization_id
        view = OrganizationChoicesView.as_view(
            admin_site=self.admin_site, organization_id=organization_id
        )
        return view(request)

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

    @admin.display(description=_l("tokens of all its turns"))
    def tokens_used(self, assistant: Assistant) -> str:
        return str(number_format(assistant.total_token_usage, use_l10n=True, force_grouping=True))

    @admin.action(description=_l("Sign out all guests"), permissions=["change"])
    def dismiss_guests(self, request: HttpRequest, queryset: QuerySet[Assistant]) -> None:
        for assistant in queryset:
            services.dismiss_guests(assistant)
        messages.success(request, _("Guests of these assistants need a new token."))

    @action(description=_l("Try it"), permissions=["try_it"])
    def try_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(_try_address(object_id) or "..")

    def has_try_it_permission(self, request: HttpRequest, object_id: str) -> bool:
        return self.has_change_permission(request) and bool(_try_address(object_id))


def _try_address(assistant_id: str) -> str:
    """Return the address of the page, empty while no app serves the route."""
    try:
        return reverse(TRY_ROUTE, args=[assistant_id])
    except NoReverseMatch:
        return ""
