"""Show operators webhooks and what was sent to them: read-only, without secrets."""

from typing import Any, ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import (
    write_milliseconds,
    write_name,
    write_names,
    write_state,
)
from amber.lib.operator_pages.columns import Reference
from public_api.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = (
        "title",
        "state",
        "failures",
        "whole_organization",
        "belongs_to",
        "created_at",
    )
    list_filter = (BY_ORGANIZATION, "whole_organization")
    list_select_related = ("organization", "user")
    search_fields = ("name", "url", "=id")
    fields = (
        "name",
        "url",
        "organization",
        "user",
        "state",
        "events",
        "include_output",
        "whole_organization",
        "failures",
        "failing_since",
        "disabled_at",
        "disabled_reason",
        "old_secret_until",
        "created_at",
        "updated_at",
    )

    @admin.display(description=_("webhook"))
    def title(self, webhook: Webhook) -> Any:
        address = webhook.url.partition("://")[2]
        return write_names(webhook.name, address) if webhook.name else address

    @admin.display(description=_("state"))
    def state(self, webhook: Webhook) -> Any:
        if not webhook.is_enabled:
            return write_names(write_state("disabled"), webhook.disabled_reason)
        return write_state("failing" if webhook.failures else "active")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "state",
        "event",
        "webhook_and_organization",
        "http_status",
        "duration",
        "attempt",
    )
    list_filter = (BY_ORGANIZATION, "status", "event")
    list_select_related = ("webhook", "organization")
    search_fields = ("=id", "=turn_id")
    references: ClassVar[dict[str, Reference]] = {"turn_id": "chats.Turn"}
    shows_seconds = True
    fields = (
        "webhook",
        "organization",
        "turn_id",
        "event",
        "status",
        "attempt",
        "http_status",
        "duration",
        "error",
        "payload",
        "due_at",
        "worker",
        "lease_until",
        "created_at",
        "started_at",
        "ended_at",
    )

    @admin.display(description=_("state"), ordering="status")
    def state(self, delivery: WebhookDelivery) -> Any:
        return write_names(write_state(delivery.status), delivery.error)

    @admin.display(description=_("webhook"))
    def webhook_and_organization(self, delivery: WebhookDelivery) -> Any:
        return write_names(write_name(delivery.webhook), delivery.organization)

    @admin.display(description=_("took"), ordering="latency_ms")
    def duration(self, delivery: WebhookDelivery) -> str:
        return write_milliseconds(delivery.latency_ms)
