"""Operators' page of files: whose they are, of what kind, how large. Never what they say.

Names and addresses are people's own words, as texts are; paths lead to the bytes. Read-only.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from amber.lib.capped_pages import CappedPaginator
from libraries.models import File


@admin.register(File)
class FileAdmin(ModelAdmin):
    list_display = ("id", "mime_type", "size", "organization", "user", "created_at", "expired_at")
    list_select_related = ("organization", "user")
    search_fields = ("user__email",)
    fields = (
        "id",
        "mime_type",
        "size",
        "organization",
        "user",
        "guest_id",
        "created_at",
        "expired_at",
    )
    ordering = ("-id",)
    paginator = CappedPaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[File]:
        rows: QuerySet[File] = super().get_queryset(request)
        return rows.defer("name", "url", "path", "text")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
