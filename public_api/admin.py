"""Operators' pages of webhooks and of what was sent to them: read-only, without secrets."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from amber.lib.capped_pages import CappedPaginator
from public_api.models import Webhook, WebhookDelivery


class _ReadOnlyAdmin(ModelAdmin):
    paginator = CappedPaginator
    show_full_result_count = False
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Webhook)
class WebhookAdmin(_ReadOnlyAdmin):
    list_display = (
        "id",
        "organization",
        "user",
        "url",
        "whole_organization",
        "failures",
        "disabled_at",
        "disabled_reason",
    )
    list_filter = ("whole_organization",)
    list_select_related = ("organization", "user")
    search_fields = ("url",)
    exclude = ("secret_sealed", "old_secret_sealed")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(_ReadOnlyAdmin):
    list_display = (
        "id",
        "webhook",
        "event",
        "status",
        "attempt",
        "http_status",
        "latency_ms",
        "error",
        "created_at",
    )
    list_filter = ("status", "event")
    list_select_related = ("webhook",)
    raw_id_fields = ("webhook", "organization")
    search_fields = ("=turn_id",)
