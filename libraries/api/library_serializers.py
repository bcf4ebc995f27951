"""Define the shapes of libraries, documents and chunks; nothing here writes rows."""

from typing import Any, Final

import orjson
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from libraries.models import Document, DocumentChunk, DocumentStage, DocumentStatus, Library
from libraries.wire import chunk_wire, document_wire, library_wire

LEAST_CHUNK_TOKENS: Final = 50
MOST_CHUNK_TOKENS: Final = 8_000
"""A shorter chunk says too little to be found; in a longer one the answer drowns."""
MAX_METADATA_BYTES: Final = 16_384
_NO_METADATA: Final = "Metadata must be a JSON object."


class LibraryInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
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


class LibrarySerializer(serializers.Serializer[Library]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    default = serializers.BooleanField()
    shared = serializers.BooleanField()
    embedding_model = serializers.CharField(help_text="The alias of the model that search uses.")
    next_embedding_model = serializers.CharField(
        allow_null=True,
        help_text="The model that search will use, while all documents are embedded anew.",
    )
    chunk_tokens = serializers.IntegerField()
    overlap_tokens = serializers.IntegerField()
    chunk_count = serializers.IntegerField(help_text="The number of chunks in search.")
    user_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def to_representation(self, instance: Library) -> dict[str, Any]:
        return library_wire(instance)


class DocumentCounts(serializers.Serializer[Any]):
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    ready = serializers.IntegerField()
    failed = serializers.IntegerField()
    cancelled = serializers.IntegerField()


class LibraryWithCounts(LibrarySerializer):
    """One library, with its documents counted by status."""

    documents = DocumentCounts(help_text="The number of documents by status.")

    def to_representation(self, instance: Library) -> dict[str, Any]:
        return library_wire(instance) | {"documents": self.context["documents"]}


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


class DocumentText(_DocumentFields):
    name = serializers.CharField(max_length=255)
    text = serializers.CharField(trim_whitespace=False)


class DocumentUrl(_DocumentFields):
    url = serializers.CharField(max_length=2_000, help_text="Fetched now and by `refresh/`.")
    name = serializers.CharField(max_length=255, required=False, help_text="By default the URL's.")


class DocumentChanges(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=255, required=False)
    metadata = _Metadata(required=False)


class DocumentProgress(serializers.Serializer[Any]):
    chunks = serializers.IntegerField()
    embedded = serializers.IntegerField()


class DocumentSerializer(serializers.Serializer[Document]):
    id = serializers.UUIDField()
    library_id = serializers.UUIDField()
    name = serializers.CharField()
    path = serializers.CharField(allow_null=True)
    source = serializers.CharField(  # type: ignore[assignment]  # of Field: where a value is read
        help_text="The URL it was fetched from; empty for uploads."
    )
    mime_type = serializers.CharField(help_text="Detected from the content by the parser.")
    content_hash = serializers.CharField(help_text="SHA-256 of the content, in hexadecimal.")
    stage = serializers.ChoiceField(DocumentStage.choices, help_text="The last finished stage.")
    status = serializers.ChoiceField(DocumentStatus.choices)
    chunked = serializers.BooleanField()
    attempt = serializers.IntegerField(help_text="The number of attempts so far.")
    error = serializers.CharField(help_text="Why it failed or what it waits for, in words.")
    progress = DocumentProgress()
    timings = serializers.DictField(
        child=serializers.IntegerField(), help_text="Milliseconds of each finished stage."
    )
    metadata = serializers.DictField()
    not_before = serializers.DateTimeField(
        allow_null=True,
        help_text="The document waits until then, because its provider limits requests or fails.",
    )
    repository_id = serializers.UUIDField(allow_null=True)
    user_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: Document) -> dict[str, Any]:
        return document_wire(instance)


class DocumentTextSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    pages = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The offset in the text at which each page begins.",
    )


class ChunkSerializer(serializers.Serializer[DocumentChunk]):
    id = serializers.UUIDField()
    order = serializers.IntegerField(help_text="Counts from 0.")
    content = serializers.CharField(help_text="`text[start:end]` of the document's text.")
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    page = serializers.IntegerField(allow_null=True)
    heading = serializers.CharField(allow_null=True)
    tokens = serializers.IntegerField()
    vectorized = serializers.BooleanField()

    def to_representation(self, instance: DocumentChunk) -> dict[str, Any]:
        return chunk_wire(instance)
