"""Define the shapes of files: what comes in; what goes out is in `libraries.wire`."""

from typing import Any

from rest_framework import serializers

from amber.lib.egress.policy import MAX_URL_CHARS
from amber.lib.rest.wire_serializers import serializer_of
from libraries.wire import FileWire


class UploadInput(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="At most AMBER_MAX_UPLOAD_BYTES.")


class FileUrlInput(serializers.Serializer[Any]):
    url = serializers.CharField(
        max_length=MAX_URL_CHARS, help_text="http or https, at a public address."
    )


FileSerializer = serializer_of(FileWire)
