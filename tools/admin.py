"""Operators' page of tools: what tenants connected, and why it last failed. Read-only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from amber.lib.capped_pages import CappedPaginator
from tools.models import Tool


@admin.register(Tool)
class ToolAdmin(ModelAdmin):
    list_display = ("name", "kind", "organization", "user", "shared", "last_error", "refreshed_at")
    list_filter = ("kind", "shared")
    list_select_related = ("organization", "user")
    search_fields = ("name",)
    ordering = ("-id",)
    paginator = CappedPaginator
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
