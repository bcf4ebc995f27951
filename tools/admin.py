"""Show operators the tools that tenants connected, and the log of their calls.

Read-only except for "Refresh now" and a test call; keys are not shown. The log holds nothing that
people wrote.
"""

from typing import Any

import orjson
from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.decorators import action

from accounts.admin import GrantInline
from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.applications import root_of
from amber.lib.errors import AmberError, Invalid
from amber.lib.json_text import numbers
from amber.lib.operator_pages import ReadOnlyAdmin
from tools.connections.authorizing import (
    begin_connecting,
    end_connecting,
    organization_of_state,
)
from tools.connections.refreshing import write_error
from tools.connections.tokens import uses_oauth
from tools.connections.trial_form import TrialForm
from tools.connections.trials import try_function
from tools.models import Tool, ToolCallRecord, ToolGrant
from tools.services import refresh_tool


class ToolGrantInline(GrantInline):
    model = ToolGrant


@admin.register(Tool)
class ToolAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "kind",
        "organization",
        "user",
        "shared",
        "function_count",
        "last_error",
        "refreshed_at",
    )
    list_filter = ("kind", "shared")
    list_select_related = ("organization", "user")
    search_fields = ("name",)
    inlines = (ToolGrantInline,)
    actions = ("refresh_now",)
    actions_detail = ("try_a_function", "connect")
    fields = (
        "organization",
        "user",
        "name",
        "kind",
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

    @admin.display(description="functions")
    def function_count(self, tool: Any) -> int:
        return tool.function_count or 0

    @admin.display(boolean=True, description="Key")
    def has_key(self, tool: Tool) -> bool:
        return bool(tool.api_key_sealed)

    @admin.display(boolean=True, description="Connected by OAuth")
    def is_connected(self, tool: Tool) -> bool | None:
        return bool(tool.oauth_sealed) if uses_oauth(tool) else None

    @admin.display
    def functions(self, tool: Tool) -> str:
        return numbers.write(tool.data.get("functions", []), option=orjson.OPT_INDENT_2).decode()

    @admin.action(description="Refresh now", permissions=["operate"])
    def refresh_now(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        for tool in tools:
            try:
                error = refresh_tool(tool).last_error
            except AmberError as refusal:
                error = refusal.message
            if error:
                messages.error(request, f"{tool.name}: {error}")
            else:
                messages.success(request, f"{tool.name} was refreshed.")

    @action(description="Try a function", permissions=["operate"])
    def try_a_function(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:tools_tool_call", args=[object_id]))

    @action(description="Connect by OAuth", permissions=["operate"])
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
                find=lambda _, tool_id: get_object_or_404(Tool, pk=tool_id),
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
        "tool",
        "function",
        "outcome",
        "http_status",
        "latency_ms",
        "detail",
        "is_test",
        "organization",
        "user",
    )
    list_filter = ("outcome", "is_test")
    list_select_related = ("tool", "organization", "user")
    search_fields = ("=tool__id", "=turn_id", "=call_id")


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
