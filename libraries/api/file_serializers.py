"""Define the shapes of files: what comes in, and what goes out (`libraries.wire`)."""

from typing import Any

from rest_framework import serializers

from amber.lib.egress.policy import MAX_URL_CHARS
from libraries.models import File
from libraries.wire import file_wire


class UploadInput(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="At most AMBER_MAX_UPLOAD_BYTES.")


class FileUrlInput(serializers.Serializer[Any]):
    url = serializers.CharField(
        max_length=MAX_URL_CHARS, help_text="http or https, at a public address."
    )


class FileSerializer(serializers.Serializer[File]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    mime_type = serializers.CharField(help_text="Detected from the bytes.")
    size = serializers.IntegerField(help_text="In bytes, as stored.")
    file_hash = serializers.CharField(help_text="SHA-256 of the stored bytes, in hexadecimal.")
    url = serializers.CharField(allow_null=True, help_text="The URL it was fetched from.")
    expired_at = serializers.DateTimeField(allow_null=True, help_text="When it is deleted.")
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: File) -> dict[str, Any]:
        return file_wire(instance)
