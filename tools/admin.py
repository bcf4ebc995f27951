"""Show operators the tools that tenants connected, and the log of their calls.

Read-only except for "Refresh now" and a test call; keys are not shown. The log holds nothing that
people wrote.
"""

from typing import Any, ClassVar, Final

import orjson
from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from accounts.admin import GrantInline
from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.applications import root_of
from amber.lib.errors import AmberError, Invalid
from amber.lib.json_text import numbers
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.cells import (
    write_milliseconds,
    write_name,
    write_names,
    write_state,
)
from amber.lib.operator_pages.columns import Reference
from amber.lib.operator_pages.filters import by_name
from tools.connections.authorizing import (
    begin_connecting,
    end_connecting,
    organization_of_state,
)
from tools.connections.refreshing import write_error
from tools.connections.tokens import uses_oauth
from tools.connections.trial_form import TrialForm
from tools.connections.trials import try_function
from tools.models import Tool, ToolCallRecord, ToolGrant, ToolKind
from tools.services import refresh_tool

_KINDS: Final = {
    ToolKind.DISCOVERY: _("Discovery"),
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
    list_filter = (by_name(), "kind", "shared")
    list_select_related = ("organization", "user")
    search_fields = ("name", "=id", "=organization__slug")
    inlines = (ToolGrantInline,)
    actions = ("refresh_now",)
    actions_detail = ("try_a_function", "connect")
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
        return rows.defer("data").annotate(function_count=count)

    @admin.display(description=_("state"))
    def state(self, tool: Tool) -> Any:
        return write_names(write_state("failing" if tool.last_error else "active"), tool.last_error)

    @admin.display(description=_("kind"), ordering="kind")
    def made_of(self, tool: Tool) -> Any:
        return _KINDS[tool.kind]

    @admin.display(description=_("functions"))
    def function_count(self, tool: Any) -> int:
        return tool.function_count or 0

    @admin.display(boolean=True, description=_("Key"))
    def has_key(self, tool: Tool) -> bool:
        return bool(tool.api_key_sealed)

    @admin.display(boolean=True, description=_("Connected by OAuth"))
    def is_connected(self, tool: Tool) -> bool | None:
        return bool(tool.oauth_sealed) if uses_oauth(tool) else None

    @admin.display(description=_("functions"))
    def functions(self, tool: Tool) -> str:
        return numbers.write(tool.data.get("functions", []), option=orjson.OPT_INDENT_2).decode()

    @admin.action(description=_("Refresh now"), permissions=["operate"])
    def refresh_now(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        for tool in tools:
            try:
                error = refresh_tool(tool).last_error
            except AmberError as refusal:
                error = refusal.message
            if error:
                messages.error(request, f"{tool.name}: {error}")
            else:
                messages.success(request, gettext("%(tool)s was refreshed.") % {"tool": tool.name})

    @action(description=_("Try a function"), permissions=["operate"])
    def try_a_function(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:tools_tool_call", args=[object_id]))

    @action(description=_("Connect by OAuth"), permissions=["operate"])
    def connect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        tool = get_object_or_404(Tool, pk=object_id)
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
                raise Invalid("This connection was not begun here, or ten minutes ago.")
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
        messages.success(request, f"{tool.name} is connected.")
        return HttpResponseRedirect(reverse("admin:tools_tool_change", args=[tool.pk]))

    def test_call(self, request: HttpRequest, tool_id: Any) -> HttpResponse:
        """Show the form; with POST, call a function and show the result."""
        if not self.has_operate_permission(request):
            return HttpResponse(status=403)
        tool = get_object_or_404(Tool.objects.select_related("organization"), pk=tool_id)
        form = TrialForm(tool, request.POST or None)
        page = {
            **self.admin_site.each_context(request),
            "title": f"Try a function of {tool.name}",
            "tool": tool,
            "form": form,
            "trial": _trial(request, tool, form) if request.method == "POST" else None,
        }
        return TemplateResponse(request, "admin/tools/test_call.html", page)


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
    list_filter = (by_name(), "outcome", "is_test")
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

    @admin.display(description=_("outcome"), ordering="outcome")
    def state(self, call: ToolCallRecord) -> Any:
        return write_names(write_state(call.outcome), call.detail)

    @admin.display(description=_("tool"))
    def tool_and_function(self, call: ToolCallRecord) -> Any:
        return write_names(write_name(call.tool), call.function)

    @admin.display(description=_("took"), ordering="latency_ms")
    def duration(self, call: ToolCallRecord) -> str:
        return write_milliseconds(call.latency_ms)


def _as_admin(request: HttpRequest, tool: Tool) -> Principal:
    assert isinstance(request.user, User)
    return Principal(tool.organization_id, request.user, role=Role.ADMIN)


def _trial(request: HttpRequest, tool: Tool, form: TrialForm) -> Any:
    """Make the test call. Return None if it cannot be made; the form then says why."""
    if not form.is_valid():
        return None
    try:
        return try_function(tool, _as_admin(request, tool), **form.cleaned_data)
    except AmberError as error:
        form.add_error(None, write_error(error))
        return None
