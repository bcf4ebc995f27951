"""Define the shapes of memories on the wire."""

from typing import Any, Final

from rest_framework import serializers

from memory.facts.facts import MAX_CONTENT_CHARS
from memory.models import Memory
from memory.wire import memory_wire

MAX_QUERY_CHARS: Final = 2_000
MAX_FOUND: Final = 50


class MemorySerializer(serializers.ModelSerializer[Memory]):
    """A memory. `superseded_by` is the id of the memory that took its place."""

    superseded_by = serializers.UUIDField(
        source="superseded_by_id", read_only=True, allow_null=True
    )

    class Meta:
        model = Memory
        fields = [
            "id",
            "content",
            "assistant_id",
            "evidence",
            "confidence",
            "valid_from",
            "valid_until",
            "superseded_by",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def to_representation(self, instance: Memory) -> dict[str, Any]:
        return memory_wire(instance)


class MemoryInput(serializers.Serializer[Any]):
    """A memory to add. With `assistant_id`, only that assistant is told of it."""

    content = serializers.CharField(max_length=MAX_CONTENT_CHARS)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)


class MemoryChanges(serializers.Serializer[Any]):
    content = serializers.CharField(max_length=MAX_CONTENT_CHARS)


class MemoryQuery(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    k = serializers.IntegerField(min_value=1, max_value=MAX_FOUND, default=10)


class FoundMemorySerializer(serializers.Serializer[Any]):
    """A memory that was found, with its `relevance` from 0 to 1."""

    memory = MemorySerializer()
    relevance = serializers.FloatField()


class FoundMemoriesSerializer(serializers.Serializer[Any]):
    results = FoundMemorySerializer(many=True)


class ExportedMemoriesSerializer(serializers.Serializer[Any]):
    memories = MemorySerializer(many=True)


class ForgottenSerializer(serializers.Serializer[Any]):
    deleted = serializers.IntegerField()
