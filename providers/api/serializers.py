"""Define the wire form of models and of the ledger's rows; nothing here reads or writes rows."""

from typing import Any

from rest_framework import serializers

from providers.models import UsageKind, UsageRecord


class ModelSerializer(serializers.Serializer[Any]):
    """A model under the alias that clients use; only operators see upstream ids and providers."""

    alias = serializers.CharField(help_text="`auto` stands for the current default model.")
    vision = serializers.BooleanField(
        help_text="The model reads images. Other models are told only the images' names."
    )
    context_tokens = serializers.IntegerField()
    max_output_tokens = serializers.IntegerField()
    default = serializers.BooleanField(help_text="`auto` stands for this model.")
    default_vision = serializers.BooleanField(
        help_text="`auto` stands for this model when the context holds an image."
    )
    offline = serializers.BooleanField(
        help_text="The built-in model, which only quotes what it is given."
    )
    allowed_parameters = serializers.ListField(
        child=serializers.CharField(),
        help_text="The only optional parameters of a request that it gets; empty: all of them.",
    )
    forced_parameters = serializers.ListField(
        child=serializers.CharField(),
        help_text="Parameters that are set for this model, whatever a request says.",
    )


class ModelPageSerializer(serializers.Serializer[Any]):
    """A page in the form that every list has; the models fit on one."""

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
            "reasoning_tokens",
            "estimated",
            "cost",
            "first_token_ms",
            "latency_ms",
            "outcome",
            "created_at",
        ]
        read_only_fields = fields


class UsageGroupSerializer(serializers.Serializer[Any]):
    """The sum of a group of calls; only the fields that were grouped by are present."""

    day = serializers.DateField(required=False, help_text="A day in UTC.")
    model = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=UsageKind.choices, required=False)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    api_key_id = serializers.UUIDField(required=False, allow_null=True)
    user_id = serializers.UUIDField(required=False, allow_null=True)
    calls = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    reasoning_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=30, decimal_places=8)
