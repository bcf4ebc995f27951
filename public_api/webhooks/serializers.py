"""Validate and describe `webhooks/`."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from public_api.models import MAX_URL_CHARS, DeliveryStatus, WebhookEvent

MAX_OVERLAP_HOURS: Final = 24 * 7
MAX_NAMED_EVENTS: Final = 100
"""More than there are, since a client may name one twice."""


class WebhookChangesInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200, allow_blank=True, required=False)
    url = serializers.CharField(max_length=MAX_URL_CHARS)
    events = BoundedListField(
        child=serializers.ChoiceField(WebhookEvent.choices),
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
        child=serializers.ChoiceField(WebhookEvent.choices),
        allow_empty=False,
        max_length=MAX_NAMED_EVENTS,
        default=WebhookEvent.values,
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


class WebhookSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(WebhookEvent.choices))
    include_output = serializers.BooleanField()
    whole_organization = serializers.BooleanField()
    user_id = serializers.UUIDField()
    enabled = serializers.BooleanField()
    disabled_at = serializers.DateTimeField(allow_null=True)
    disabled_reason = serializers.CharField(allow_null=True)
    failures = serializers.IntegerField(help_text="The number of attempts in a row that failed.")
    failing_since = serializers.DateTimeField(allow_null=True)
    old_secret_until = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class IssuedWebhookSerializer(WebhookSerializer):
    """A new webhook, with its secret: no later answer shows it."""

    secret = serializers.CharField(allow_null=True)


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    event_id = serializers.UUIDField(help_text="The `id` of the event; redeliveries share it.")
    event = serializers.ChoiceField(WebhookEvent.choices)
    turn_id = serializers.UUIDField()
    status = serializers.ChoiceField(DeliveryStatus.choices)
    attempts = serializers.IntegerField()
    http_status = serializers.IntegerField(allow_null=True)
    latency_ms = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
