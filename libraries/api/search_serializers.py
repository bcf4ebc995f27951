"""Define the shapes of a search: the query, and the passages that come back."""

from typing import Any, Final

import orjson
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from amber.lib.rest.wire_serializers import serializer_of
from libraries.retrieval.passages import PassageWire
from libraries.retrieval.search import DEFAULT_K, MAX_K

MAX_QUERY_CHARS: Final = 4_000
"""A long paragraph. Anything longer is a document and not a question."""
MAX_NAMED: Final = 100
MAX_METADATA_BYTES: Final = 4_096


class FiltersInput(serializers.Serializer[Any]):
    document_ids = BoundedListField(
        child=serializers.UUIDField(), max_length=MAX_NAMED, required=False
    )
    path_prefix = serializers.CharField(
        max_length=1_000, required=False, allow_blank=True, trim_whitespace=False
    )
    metadata = serializers.DictField(
        required=False, help_text="Only documents whose metadata has these values under these keys."
    )

    def to_internal_value(self, data: Any) -> Any:
        """Refuse unknown filters: ignoring one would find everything."""
        value = super().to_internal_value(data)
        unknown = [name for name in data if name not in self.fields]
        if unknown:
            there = ", ".join(self.fields)
            raise serializers.ValidationError(
                dict.fromkeys(unknown, f"There is no such filter. Available: {there}.")
            )
        return value

    def validate_metadata(self, value: dict[str, Any]) -> dict[str, Any]:
        if len(orjson.dumps(value)) > MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"It may have at most {MAX_METADATA_BYTES:,} bytes.")
        return value


class SearchInput(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    k = serializers.IntegerField(
        required=False,
        default=DEFAULT_K,
        min_value=1,
        max_value=MAX_K,
        help_text="The number of passages.",
    )
    filters = FiltersInput(required=False)

    def to_internal_value(self, data: Any) -> Any:
        misplaced = [str(name) for name in FiltersInput().fields if name in data]
        if misplaced:
            raise serializers.ValidationError(
                dict.fromkeys(misplaced, "This belongs in `filters`.")
            )
        return super().to_internal_value(data)


class LibrariesSearchInput(SearchInput):
    library_ids = BoundedListField(
        child=serializers.UUIDField(), allow_empty=False, max_length=MAX_NAMED
    )


PassageSerializer = serializer_of(PassageWire)


class FoundSerializer(serializers.Serializer[Any]):
    results = PassageSerializer(many=True)
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="Which parts of the search had to be left out, in words.",
    )
