"""Define the shapes of memories on the wire."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.wire_serializers import serializer_of
from memory.facts.facts import MAX_CONTENT_CHARS
from memory.wire import MemoryWire

MAX_QUERY_CHARS: Final = 2_000
MAX_FOUND: Final = 50


MemorySerializer = serializer_of(MemoryWire)


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
