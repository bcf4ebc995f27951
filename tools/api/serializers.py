"""Define the wire form of tools, test calls and the call log; nothing here reads or writes rows."""

from typing import Any

import orjson
from rest_framework import serializers

from amber.lib.egress.policy import MAX_URL_CHARS
from amber.lib.rest.bounded_fields import PlainNameField
from amber.lib.rest.wire_serializers import serializer_of
from tools.models import ToolKind
from tools.openapi.document import MAX_DOCUMENT_BYTES
from tools.wire import CallRecordWire, ToolSummaryWire, ToolWire

MAX_KEY_CHARS = 4_096
MAX_OPTIONS_BYTES = 50_000
MAX_ARGUMENTS_BYTES = 200_000


class ToolChanges(serializers.Serializer[Any]):
    """The fields of a tool that can be changed."""

    name = PlainNameField(
        max_length=200, required=False, help_text="If omitted, the service's own name."
    )
    discovery_url = serializers.CharField(
        max_length=MAX_URL_CHARS,
        required=False,
        help_text="The address of the manifest, the MCP server or the OpenAPI document.",
    )
    document = serializers.CharField(
        max_length=MAX_DOCUMENT_BYTES,
        required=False,
        write_only=True,
        trim_whitespace=False,
        help_text="The text of an OpenAPI document, JSON or YAML, instead of an address.",
    )
    api_key = serializers.CharField(
        max_length=MAX_KEY_CHARS,
        required=False,
        allow_blank=True,
        write_only=True,
        help_text="Stored encrypted and never shown. Empty: no key.",
    )
    options = serializers.DictField(
        required=False,
        help_text="`ask_first` lists functions that a person must approve before each call, "
        "`trusted` those that are called without asking even after untrusted content was read. The "
        "other options depend on the kind.",
    )
    shared = serializers.BooleanField(required=False)

    def validate_api_key(self, api_key: str) -> str:
        if not api_key.isprintable():
            raise serializers.ValidationError("The key contains characters a header cannot carry.")
        return api_key

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take a document out of the options: unlike them it is not shown again."""
        options = dict(given.get("options", {}))
        if "options" in given and "document" in options:
            given["document"] = _text_of(options.pop("document"))
            given["options"] = options
        if len(orjson.dumps(options)) > MAX_OPTIONS_BYTES:
            text = f"Must be at most {MAX_OPTIONS_BYTES:,} bytes."
            raise serializers.ValidationError({"options": [text]})
        return given


def _text_of(document: Any) -> str:
    """Return the document's text. Raises ValidationError."""
    if (
        not isinstance(document, str)
        or not 0 < len(document) <= MAX_DOCUMENT_BYTES
        or "\0" in document
    ):
        text = f"Must be the text of a document, of at most {MAX_DOCUMENT_BYTES:,} bytes."
        raise serializers.ValidationError({"options.document": [text]})
    return document


class ToolInput(ToolChanges):
    kind = serializers.ChoiceField(choices=ToolKind.choices)


ToolSummarySerializer = serializer_of(ToolSummaryWire)
ToolSerializer = serializer_of(ToolWire)
CallRecordSerializer = serializer_of(CallRecordWire)


class CallInput(serializers.Serializer[Any]):
    function = serializers.CharField(max_length=200)
    arguments = serializers.DictField(required=False)

    def validate_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(orjson.dumps(arguments)) > MAX_ARGUMENTS_BYTES:
            raise serializers.ValidationError(f"Must be at most {MAX_ARGUMENTS_BYTES:,} bytes.")
        return arguments


class _ProducedFileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    mime_type = serializers.CharField()
    size = serializers.SerializerMethodField(help_text="In bytes.")

    def get_size(self, file: Any) -> int:
        return len(file.content)


class _ResultSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    content = serializers.CharField(help_text="What a model would read, before it is shortened.")
    detail = serializers.CharField(help_text="Details of a failure, for the tool's owner.")
    files = _ProducedFileSerializer(many=True)


class ExchangeSerializer(serializers.Serializer[Any]):
    method = serializers.CharField()
    url = serializers.CharField()
    request_headers = serializers.DictField(child=serializers.CharField())
    request_body = serializers.CharField()
    status = serializers.IntegerField(allow_null=True)
    response_headers = serializers.DictField(child=serializers.CharField())
    response_body = serializers.CharField(help_text="The beginning of the body.")
    latency_ms = serializers.IntegerField()
    fault = serializers.CharField(help_text="Why no answer came; empty if one did.")


class TrialSerializer(serializers.Serializer[Any]):
    """A test call (`tools.connections.trials.Trial`)."""

    result = _ResultSerializer(source="*")
    exchanges = ExchangeSerializer(many=True, help_text="Without credentials.")
    latency_ms = serializers.IntegerField()
