"""The shapes of tools, test calls and the call log; nothing here reads or writes rows."""

from typing import Any

import orjson
from rest_framework import serializers

from amber.lib.egress.policy import MAX_URL_CHARS
from tools.models import CallOutcome, Tool, ToolCallRecord, ToolKind
from tools.openapi.document import MAX_DOCUMENT_BYTES
from tools.wire import call_wire, tool_wire

MAX_KEY_CHARS = 4_096
MAX_OPTIONS_BYTES = 50_000
MAX_ARGUMENTS_BYTES = 200_000


class ToolChanges(serializers.Serializer[Any]):
    """What of a tool can be changed."""

    name = serializers.CharField(
        max_length=200, required=False, help_text="Left out: the service's own name."
    )
    discovery_url = serializers.CharField(
        max_length=MAX_URL_CHARS,
        required=False,
        help_text="Of the manifest, the MCP server, or the OpenAPI document.",
    )
    document = serializers.CharField(
        max_length=MAX_DOCUMENT_BYTES,
        required=False,
        write_only=True,
        trim_whitespace=False,
        help_text="An OpenAPI document, JSON or YAML, instead of an address.",
    )
    api_key = serializers.CharField(
        max_length=MAX_KEY_CHARS,
        required=False,
        allow_blank=True,
        write_only=True,
        help_text="Stored encrypted and never shown. Empty: none.",
    )
    options = serializers.DictField(
        required=False,
        help_text="`ask_first`: functions that a person must approve before each call; the rest "
        "belongs to the kind.",
    )
    shared = serializers.BooleanField(required=False)

    def validate_api_key(self, api_key: str) -> str:
        if not api_key.isprintable():
            raise serializers.ValidationError("This holds characters that no header may hold.")
        return api_key

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """A document among the options is one beside them: it is no option that is shown."""
        options = dict(given.get("options", {}))
        if "options" in given and "document" in options:
            given["document"] = _text_of(options.pop("document"))
            given["options"] = options
        if len(orjson.dumps(options)) > MAX_OPTIONS_BYTES:
            text = f"At most {MAX_OPTIONS_BYTES:,} bytes."
            raise serializers.ValidationError({"options": [text]})
        return given


def _text_of(document: Any) -> str:
    """Raises ValidationError."""
    if (
        not isinstance(document, str)
        or not 0 < len(document) <= MAX_DOCUMENT_BYTES
        or "\0" in document
    ):
        text = f"The text of a document, of at most {MAX_DOCUMENT_BYTES:,} bytes."
        raise serializers.ValidationError({"options.document": [text]})
    return document


class ToolInput(ToolChanges):
    kind = serializers.ChoiceField(choices=ToolKind.choices)


class FunctionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As the service says it.")
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON Schema 2020-12 of the arguments.")
    idempotent = serializers.BooleanField()
    requires_approval = serializers.BooleanField(help_text="The service's wish.")
    timeout_seconds = serializers.FloatField(allow_null=True)


class ToolSummarySerializer(serializers.Serializer[Any]):
    """A tool in a list (`tools.wire.summary_wire`)."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=ToolKind.choices)
    name = serializers.CharField()
    description = serializers.CharField(help_text="The service's own.")
    discovery_url = serializers.CharField(help_text="Empty for a pasted document.")
    has_api_key = serializers.BooleanField()
    options = serializers.DictField()
    shared = serializers.BooleanField()
    user_id = serializers.UUIDField(allow_null=True)
    function_names = serializers.ListField(child=serializers.CharField())
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What discovery left out, renamed or cut."
    )
    last_error = serializers.CharField(
        help_text="Why the last refresh failed; empty if it did not."
    )
    refreshed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ToolSerializer(ToolSummarySerializer):
    homepage_url = serializers.CharField()
    functions = FunctionSerializer(many=True)

    def to_representation(self, instance: Tool) -> dict[str, Any]:
        return tool_wire(instance)


class CallInput(serializers.Serializer[Any]):
    function = serializers.CharField(max_length=200)
    arguments = serializers.DictField(required=False)

    def validate_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(orjson.dumps(arguments)) > MAX_ARGUMENTS_BYTES:
            raise serializers.ValidationError(f"At most {MAX_ARGUMENTS_BYTES:,} bytes.")
        return arguments


class _ProducedFileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    mime_type = serializers.CharField()
    size = serializers.SerializerMethodField(help_text="In bytes.")

    def get_size(self, file: Any) -> int:
        return len(file.content)


class _ResultSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    content = serializers.CharField(help_text="What a model would read, before it is cut.")
    detail = serializers.CharField(help_text="More about a failure, for the tool's owner.")
    files = _ProducedFileSerializer(many=True)


class ExchangeSerializer(serializers.Serializer[Any]):
    method = serializers.CharField()
    url = serializers.CharField()
    request_headers = serializers.DictField(child=serializers.CharField())
    request_body = serializers.CharField()
    status = serializers.IntegerField(allow_null=True)
    response_headers = serializers.DictField(child=serializers.CharField())
    response_body = serializers.CharField(help_text="Cut.")
    latency_ms = serializers.IntegerField()
    fault = serializers.CharField(help_text="Why no answer came.")


class TrialSerializer(serializers.Serializer[Any]):
    """A test call (`tools.connections.trials.Trial`)."""

    result = _ResultSerializer(source="*")
    exchanges = ExchangeSerializer(many=True, help_text="Without credentials.")
    latency_ms = serializers.IntegerField()


class CallRecordSerializer(serializers.Serializer[ToolCallRecord]):
    """A line of the call log."""

    id = serializers.UUIDField()
    function = serializers.CharField()
    call_id = serializers.CharField()
    outcome = serializers.ChoiceField(choices=CallOutcome.choices)
    detail = serializers.CharField(help_text="Why it did not go well.")
    http_status = serializers.IntegerField(allow_null=True, help_text="Of an answer that failed.")
    latency_ms = serializers.IntegerField()
    is_test = serializers.BooleanField()
    user_id = serializers.UUIDField(allow_null=True)
    assistant_id = serializers.UUIDField(allow_null=True)
    turn_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: ToolCallRecord) -> dict[str, Any]:
        return call_wire(instance)
