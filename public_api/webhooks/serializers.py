"""The shapes of `webhooks/`."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from public_api.models import MAX_URL_CHARS, DeliveryStatus, WebhookEvent

MAX_OVERLAP_HOURS: Final = 24 * 7
MAX_NAMED_EVENTS: Final = 100
"""There are fewer; some may be named twice."""


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
        required=False, help_text="Send what the turn wrote as well."
    )
    whole_organization = serializers.BooleanField(
        required=False, help_text="Hear of everybody's keys, not only of your own: for admins."
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
        help_text="How long the old secret signs too.",
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
    failures = serializers.IntegerField(help_text="Attempts in a row that failed.")
    failing_since = serializers.DateTimeField(allow_null=True)
    old_secret_until = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class IssuedWebhookSerializer(WebhookSerializer):
    """With its secret, this once."""

    secret = serializers.CharField(allow_null=True)


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    event_id = serializers.UUIDField(help_text="`id` of what was sent: redeliveries share it.")
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
