"""Validate and describe `webhooks/`."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from amber.lib.rest.wire_serializers import serializer_of
from public_api.models import MAX_URL_CHARS, WEBHOOK_EVENTS
from public_api.webhooks.wire import DeliveryWire, IssuedWebhookWire, WebhookWire

MAX_OVERLAP_HOURS: Final = 24 * 7
MAX_NAMED_EVENTS: Final = 100
"""More than there are, since a client may name one twice."""


class WebhookChangesInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200, allow_blank=True, required=False)
    url = serializers.CharField(max_length=MAX_URL_CHARS)
    events = BoundedListField(
        child=serializers.ChoiceField(WEBHOOK_EVENTS),
        allow_empty=False,
        required=False,
        max_length=MAX_NAMED_EVENTS,
    )
    include_output = serializers.BooleanField(
        required=False, help_text="Also send what the turn wrote."
    )
    whole_organization = serializers.BooleanField(
        required=False,
        help_text="Notify about turns of everybody's keys, not only of yours. Admins only.",
    )

    def validate_events(self, events: list[str]) -> list[str]:
        return list(dict.fromkeys(events))


class NewWebhookInput(WebhookChangesInput):
    events = BoundedListField(
        child=serializers.ChoiceField(WEBHOOK_EVENTS),
        allow_empty=False,
        max_length=MAX_NAMED_EVENTS,
        default=[name for name, _ in WEBHOOK_EVENTS],
    )


class EditedWebhookInput(WebhookChangesInput):
    enabled = serializers.BooleanField(required=False)


class RotateSecretInput(serializers.Serializer[Any]):
    overlap_hours = serializers.FloatField(
        default=24,
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        help_text="How many hours the old secret also signs.",
    )


WebhookSerializer = serializer_of(WebhookWire)
IssuedWebhookSerializer = serializer_of(IssuedWebhookWire)
DeliverySerializer = serializer_of(DeliveryWire)
