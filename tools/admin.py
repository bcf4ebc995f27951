"""Show operators the tools that tenants connected, and the log of their calls.

Read-only except for "Refresh now" and a test call; keys are not shown. The log holds nothing that
people wrote.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _l
from unfold.decorators import action
from unfold.widgets import INPUT_CLASSES, SELECT_CLASSES, TEXTAREA_CLASSES

from accounts.admin.groups import GrantInline
from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.applications import root_of
from amber.lib.errors import AmberError, Invalid
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import (
    write_milliseconds,
    write_name,
    write_names,
    write_state,
)
from amber.lib.operator_pages.columns import Reference
from tools.connections.authorizing import (
    begin_connecting,
    end_connecting,
    organization_of_state,
)
from tools.connections.refreshing import write_error
from tools.connections.tokens import uses_oauth
from tools.connections.trials import Trial, try_function
from tools.models import Tool, ToolCallRecord, ToolGrant, ToolKind
from tools.services import refresh_tool
from tools.trial_forms.controls import argument_rows
from tools.trial_forms.trial_page import TrialPage, open_page, read_page

MAX_TABLES = 60
"""A tool can have hundreds of functions: the page has the arguments of so many, and links to all."""


_MARKS: Final = {
    "read_only": _l("only reads"),
    "idempotent": _l("may be called twice"),
    "requires_approval": _l("asks first"),
}
"""What a service says of its function, in words."""

_KINDS: Final[dict[str, Any]] = {
    ToolKind.DISCOVERY: _l("Discovery"),
    ToolKind.OPENAPI: "OpenAPI",
    ToolKind.MCP: "MCP",
}


class ToolGrantInline(GrantInline):
    model = ToolGrant


@admin.register(Tool)
class ToolAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "state",
        "made_of",
        "function_count",
        "shared",
        "belongs_to",
        "refreshed_at",
    )
    list_filter = (BY_ORGANIZATION, "kind", "shared")
    list_select_related = ("organization", "user")
    search_fields = ("name", "=id", "=organization__slug")
    unread = ("data",)
    inlines = (ToolGrantInline,)
    actions = ("refresh_now",)
    actions_detail = ("try_a_function", "connect")

    styles = ("tools/trial.css",)
    fields = (
        "organization",
        "user",
        "name",
        "made_of",
        "shared",
        "description",
        "discovery_url",
        "has_key",
        "is_connected",
        "options",
        "last_error",
        "warnings",
        "refreshed_at",
        "tried_at",
        "functions",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tool]:
        count = Func(
            F("data__functions"), function="jsonb_array_length", output_field=IntegerField()
        )
        rows: QuerySet[Tool] = super().get_queryset(request)
        return rows.annotate(function_count=count)

    @admin.display(description=_l("state"))
    def state(self, tool: Tool) -> Any:
        return write_names(write_state("failing" if tool.last_error else "active"), tool.last_error)

    @admin.display(description=_l("kind"), ordering="kind")
    def made_of(self, tool: Tool) -> Any:
        return _KINDS[ToolKind(tool.kind)]

    @admin.display(description=_l("functions"))
    def function_count(self, tool: Any) -> int:
        return tool.function_count or 0

    @admin.display(boolean=True, description=_l("Key"))
    def has_key(self, tool: Tool) -> bool:
        return bool(tool.api_key_sealed)

    @admin.display(boolean=True, description=_l("Connected by OAuth"))
    def is_connected(self, tool: Tool) -> bool | None:
        return bool(tool.oauth_sealed) if uses_oauth(tool) else None

    @admin.display(description=_l("functions"))
    def functions(self, tool: Tool) -> SafeString:
        """Show each function with a table of its arguments, and a link to try it."""
        shown = [
            _function_table(each, has_rows=place < MAX_TABLES)
            for place, each in enumerate(tool.data.get("functions", ()))
        ]
        page = reverse("admin:tools_tool_call", args=[tool.pk])
        return render_to_string("admin/tools/functions.html", {"functions": shown, "page": page})

    @admin.action(description=_l("Refresh now"), permissions=["operate"])
    def refresh_now(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        for tool in tools:
            try:
                error = refresh_tool(tool).last_error
            except AmberError as refusal:
                error = refusal.message
            if error:
                messages.error(request, f"{tool.name}: {error}")
            else:
                messages.success(request, _("%(tool)s was refreshed.") % {"tool": tool.name})

    @action(description=_l("Try a function"), permissions=["operate"])
    def try_a_function(self, request: HttpRequest, object_id: str) -> HttpResponse:
        tool = self.find_row(request, object_id)
        return HttpResponseRedirect(reverse("admin:tools_tool_call", args=[tool.pk]))

    @action(description=_l("Connect by OAuth"), permissions=["operate"])
    def connect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        tool = self.find_row(request, object_id)
        returns_to = f"{root_of(request)}{reverse('admin:tools_tool_connected')}"
        try:
            page = begin_connecting(tool, _as_admin(request, tool), returns_to=returns_to)
        except AmberError as refusal:
            messages.error(request, write_error(refusal))
            page = reverse("admin:tools_tool_change", args=[object_id])
        return HttpResponseRedirect(page)

    def has_operate_permission(self, request: HttpRequest, object_id: str = "") -> bool:
        return request.user.has_perm("tools.change_tool")

    def get_urls(self) -> list[URLPattern]:
        page = path(
            "<uuid:tool_id>/call/",
            self.admin_site.admin_view(self.test_call),
            name="tools_tool_call",
        )
        back = path(
            "connected/",
            self.admin_site.admin_view(self.finish_connecting),
            name="tools_tool_connected",
        )
        return [page, back, *super().get_urls()]

    def finish_connecting(self, request: HttpRequest) -> HttpResponse:
        """Take the operator back from a server's page, and connect the tool."""
        if not self.has_operate_permission(request):
            return HttpResponse(status=403)
        given = request.GET
        state = given.get("state", "")
        organization_id = organization_of_state(state)
        try:
            if organization_id is None:
                raise Invalid(
                    "This connection was not started here, or was started more than ten minutes ago."
                )
            assert isinstance(request.user, User)
            tool = end_connecting(
                Principal(organization_id, request.user, role=Role.ADMIN),
                state=state,
                code=given.get("code", ""),
                issuer=given.get("iss", ""),
                find=lambda _principal, tool_id: get_object_or_404(Tool, pk=tool_id),
            )
        except AmberError as refusal:
            messages.error(request, write_error(refusal))
            return HttpResponseRedirect(reverse("admin:tools_tool_changelist"))
        messages.success(request, _("%(tool)s is connected.") % {"tool": tool.name})
        return HttpResponseRedirect(reverse("admin:tools_tool_change", args=[tool.pk]))

    def test_call(self, request: HttpRequest, tool_id: Any) -> HttpResponse:
        """Show the form; with POST, call a function and show the result."""
        if not self.has_operate_permission(request):
            return HttpResponse(status=403)
        tool = get_object_or_404(Tool.objects.select_related("organization"), pk=tool_id)
        if request.method == "POST":
            page = read_page(tool, request.POST.dict())
        else:
            page = open_page(tool, request.GET.get("function", ""))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Try a function of %(tool)s") % {"tool": tool.name},
            "opts": self.opts,
            "original": tool,
            "tool": tool,
            "page": page,
            "trial": _trial(request, tool, page),
            "text_classes": " ".join(TEXTAREA_CLASSES),
            "input_classes": " ".join(INPUT_CLASSES),
            "select_classes": " ".join(SELECT_CLASSES),
        }
        return TemplateResponse(request, "admin/tools/test_call.html", context)


@admin.register(ToolCallRecord)
class ToolCallRecordAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "state",
        "tool_and_function",
        "duration",
        "http_status",
        "is_test",
        "belongs_to",
    )
    list_filter = (BY_ORGANIZATION, "outcome", "is_test")
    list_select_related = ("tool", "organization", "user")
    search_fields = ("=id", "=tool__id", "=turn_id", "=call_id")
    references: ClassVar[dict[str, Reference]] = {
        "assistant_id": "assistants.Assistant",
        "turn_id": "chats.Turn",
    }
    shows_seconds = True
    fields = (
        "tool",
        "function",
        "organization",
        "user",
        "assistant_id",
        "turn_id",
        "outcome",
        "http_status",
        "duration",
        "detail",
        "is_test",
        "call_id",
        "created_at",
    )

    @admin.display(description=_l("outcome"), ordering="outcome")
    def state(self, call: ToolCallRecord) -> Any:
        return write_names(write_state(call.outcome), call.detail)

    @admin.display(description=_l("tool"))
    def tool_and_function(self, call: ToolCallRecord) -> Any:
        return write_names(write_name(call.tool), call.function)

    @admin.display(description=_l("took"), ordering="latency_ms")
    def duration(self, call: ToolCallRecord) -> str:
        return write_milliseconds(call.latency_ms)


def _as_admin(request: HttpRequest, tool: Tool) -> Principal:
    assert isinstance(request.user, User)
    return Principal(tool.organization_id, request.user, role=Role.ADMIN)


def _trial(request: HttpRequest, tool: Tool, page: TrialPage) -> Trial | None:
    """Make the call that the page asks for. Return None if none is made; the page then says why."""
    if page.call is None:
        return None
    function, arguments = page.call
    try:
        return try_function(tool, _as_admin(request, tool), function=function, arguments=arguments)
    except AmberError as error:
        page.refusals.append(write_error(error))
        return None


def _function_table(function: Mapping[str, Any], *, has_rows: bool) -> dict[str, Any]:
    """Return what the page shows of a function: its name, its words, the table of its arguments."""
    return {
        "name": str(function["name"]),
        "description": str(function.get("description", "")),
        "marks": [words for mark, words in _MARKS.items() if function.get(mark)],
        "rows": argument_rows(function.get("parameters")) if has_rows else (),
        "has_rows": has_rows,
    }
