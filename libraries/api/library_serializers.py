"""Define the shapes of libraries, documents and chunks; what goes out is in `libraries.wire`."""

from typing import Any, Final

import orjson
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from amber.lib.rest.bounded_fields import PlainNameField
from amber.lib.rest.wire_serializers import serializer_of
from libraries.wire import (
    ChunkWire,
    DocumentWire,
    IngestionWire,
    LibraryWire,
    LibraryWithCountsWire,
)

LEAST_CHUNK_TOKENS: Final = 50
MOST_CHUNK_TOKENS: Final = 8_000
"""A shorter chunk says too little to be found; in a longer one the answer drowns."""
MAX_METADATA_BYTES: Final = 16_384
_NO_METADATA: Final = "Metadata must be a JSON object."


class LibraryInput(serializers.Serializer[Any]):
    name = PlainNameField(max_length=200)
    description = serializers.CharField(max_length=2_000, allow_blank=True, required=False)
    default = serializers.BooleanField(
        required=False,
        help_text="Takes documents that name no library. Each person has one default.",
    )
    shared = serializers.BooleanField(required=False, help_text="All members may read it.")
    embedding_model = serializers.CharField(
        max_length=120, required=False, help_text="An alias; without it, the platform's default."
    )
    chunk_tokens = serializers.IntegerField(
        required=False, min_value=LEAST_CHUNK_TOKENS, max_value=MOST_CHUNK_TOKENS
    )
    overlap_tokens = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST_CHUNK_TOKENS
    )


@extend_schema_field({"type": "object", "additionalProperties": {}})
class _Metadata(serializers.JSONField):
    """An object, which a form sends as JSON text."""

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(_parse_json(data))
        if not isinstance(value, dict):
            raise serializers.ValidationError(_NO_METADATA)
        if len(orjson.dumps(value)) > MAX_METADATA_BYTES:
            raise serializers.ValidationError(
                f"Metadata may have at most {MAX_METADATA_BYTES:,} bytes of JSON."
            )
        return value


def _parse_json(data: Any) -> Any:
    if not isinstance(data, str):
        return data
    try:
        return orjson.loads(data.encode())
    except orjson.JSONDecodeError:
        raise serializers.ValidationError(_NO_METADATA)


class _DocumentFields(serializers.Serializer[Any]):
    """The fields of a new document, however its content is sent."""

    path = serializers.CharField(
        max_length=1_000,
        required=False,
        help_text="Identifies the document: sending the same path again replaces its content.",
    )
    metadata = _Metadata(required=False, help_text="Searches can filter by it.")


class DocumentUpload(_DocumentFields):
    file = serializers.FileField(help_text="At most AMBER_MAX_UPLOAD_BYTES.")
    name = serializers.CharField(max_length=255, required=False, help_text="By default the file's.")


class LongTextField(serializers.CharField):
    """A text of any length, kept as written.

    REST framework looks at each character by itself for what the parser has refused already: 20 MB
    held the interpreter for seconds.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False} | kwargs)
        self.validators = [
            each
            for each in self.validators
            if not isinstance(each, ProhibitSurrogateCharactersValidator)
        ]


class DocumentText(_DocumentFields):
    name = serializers.CharField(max_length=255)
    text = LongTextField()


class DocumentUrl(_DocumentFields):
    url = serializers.CharField(max_length=2_000, help_text="Fetched now and by `refresh/`.")
    name = serializers.CharField(max_length=255, required=False, help_text="By default the URL's.")


class DocumentChanges(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=255, required=False)
    metadata = _Metadata(required=False)


class DocumentTextSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    pages = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The offset in the text at which each page begins.",
    )


LibrarySerializer = serializer_of(LibraryWire)
IngestionSerializer = serializer_of(IngestionWire)
LibraryWithCounts = serializer_of(LibraryWithCountsWire)
DocumentSerializer = serializer_of(DocumentWire)
ChunkSerializer = serializer_of(ChunkWire)
