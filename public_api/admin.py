"""Show operators webhooks and what was sent to them: read-only, without secrets."""

from django.contrib import admin

from amber.lib.operator_pages import ReadOnlyAdmin
from public_api.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
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
class WebhookDeliveryAdmin(ReadOnlyAdmin):
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
