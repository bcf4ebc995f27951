"""The shapes of models and of the ledger's rows; nothing here reads or writes rows."""

from typing import Any

from rest_framework import serializers

from providers.models import UsageKind, UsageRecord


class ModelSerializer(serializers.Serializer[Any]):
    """A model by the alias clients use; upstream ids and providers are the operators' business."""

    alias = serializers.CharField(help_text="`auto`: the default model, whichever it is.")
    vision = serializers.BooleanField(help_text="Reads images; others are told their names.")
    context_tokens = serializers.IntegerField()
    max_output_tokens = serializers.IntegerField()
    default = serializers.BooleanField(help_text="What `auto` means.")
    default_vision = serializers.BooleanField(help_text="What `auto` means where images are.")
    offline = serializers.BooleanField(help_text="Built in: quotes what it is given, no more.")


class ModelPageSerializer(serializers.Serializer[Any]):
    """The form every list has; models are few enough for one page."""

    next = serializers.URLField(allow_null=True, help_text="Always null.")
    previous = serializers.URLField(allow_null=True, help_text="Always null.")
    results = ModelSerializer(many=True)


class UsageSerializer(serializers.ModelSerializer[UsageRecord]):
    user_id = serializers.UUIDField(read_only=True, allow_null=True)

    class Meta:
        model = UsageRecord
        fields = [
            "id",
            "user_id",
            "api_key_id",
            "guest_id",
            "assistant_id",
            "turn_id",
            "kind",
            "model",
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "estimated",
            "cost",
            "first_token_ms",
            "latency_ms",
            "outcome",
            "created_at",
        ]
        read_only_fields = fields


class UsageGroupSerializer(serializers.Serializer[Any]):
    """As `usage_report.grouped` makes them: of the fields that name the group only those asked for."""

    day = serializers.DateField(required=False, help_text="Of UTC.")
    model = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=UsageKind.choices, required=False)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    api_key_id = serializers.UUIDField(required=False, allow_null=True)
    user_id = serializers.UUIDField(required=False, allow_null=True)
    calls = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=30, decimal_places=8)
