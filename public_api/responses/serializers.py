"""Validate POST /v1/responses: known fields are read strictly, others are ignored.

Tools that a provider would run (web search and the like) are refused: an assistant brings its own.
"""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedDictField
from public_api.completions.serializers import (
    MAX_MODEL_CHARS,
    MAX_OUTPUT_TOKENS,
    MAX_USER_CHARS,
    MAX_WORD_CHARS,
)
from public_api.completions.serializers import OPTIONAL as _OPTIONAL
from public_api.openai.function_fields import (
    FUNCTION_NAME,
    MAX_DESCRIPTION_CHARS,
    ChoiceOfToolField,
    FunctionInput,
    FunctionsField,
    SchemaField,
    check_choice,
)
from public_api.openai.strict_fields import FlagField, NumberField, TextField, WholeNumberField
from public_api.responses.items_field import ItemsField

MAX_INSTRUCTIONS_CHARS: Final = 200_000
MAX_METADATA: Final = 16
MAX_METADATA_KEY_CHARS: Final = 64
MAX_METADATA_CHARS: Final = 512
MAX_ID_CHARS: Final = 100


class MetadataField(BoundedDictField):
    """An object with OpenAI's own limits. `chat_id` continues a stored chat; `new` starts one."""

    child = TextField(max_length=MAX_METADATA_CHARS)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        given: dict[str, str] = super().to_internal_value(data)
        if any(len(name) > MAX_METADATA_KEY_CHARS for name in given):
            raise serializers.ValidationError(
                f"Names have at most {MAX_METADATA_KEY_CHARS} characters."
            )
        return given


class _TypedInput(serializers.Serializer[Any]):
    type = serializers.ChoiceField(["function"])


class ResponseToolInput(_TypedInput, FunctionInput):
    """A tool, whose type is checked first: other types need not have a name."""


class ResponseToolsField(FunctionsField):
    child = ResponseToolInput()


class TextFormatInput(serializers.Serializer[Any]):
    type = serializers.ChoiceField(["text", "json_object", "json_schema"])
    name = TextField(required=False, validators=[FUNCTION_NAME])
    description = TextField(**_OPTIONAL, max_length=MAX_DESCRIPTION_CHARS)
    schema = SchemaField(**_OPTIONAL)
    strict = FlagField(**_OPTIONAL)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        missing = [name for name in ("name", "schema") if not attrs.get(name)]
        if attrs["type"] == "json_schema" and missing:
            said = serializers.ErrorDetail("This format needs it.", code="required")
            raise serializers.ValidationError({missing[0]: [said]})
        return attrs


class TextInput(serializers.Serializer[Any]):
    format = TextFormatInput(**_OPTIONAL)
    verbosity = TextField(**_OPTIONAL, max_length=MAX_WORD_CHARS)


class ReasoningInput(serializers.Serializer[Any]):
    effort = TextField(**_OPTIONAL, max_length=MAX_WORD_CHARS)


class ResponseInput(serializers.Serializer[Any]):
    """The body of a request. Other fields are ignored."""

    model = TextField(
        max_length=MAX_MODEL_CHARS,
        allow_blank=False,
        help_text="`assistant:<slug or id>` or an alias; GET /v1/models lists them.",
    )
    input = ItemsField()
    instructions = TextField(
        **_OPTIONAL,
        max_length=MAX_INSTRUCTIONS_CHARS,
        help_text="For this response only; the next one does not inherit them.",
    )
    previous_response_id = TextField(**_OPTIONAL, max_length=MAX_ID_CHARS)
    tools = ResponseToolsField()
    tool_choice = ChoiceOfToolField()
    parallel_tool_calls = FlagField(**_OPTIONAL)
    temperature = NumberField(**_OPTIONAL, min_value=0, max_value=2)
    top_p = NumberField(**_OPTIONAL, min_value=0, max_value=1)
    max_output_tokens = WholeNumberField(**_OPTIONAL, min_value=1, max_value=MAX_OUTPUT_TOKENS)
    text = TextInput(**_OPTIONAL)
    reasoning = ReasoningInput(**_OPTIONAL)
    metadata = MetadataField(**_OPTIONAL, max_entries=MAX_METADATA)
    store = FlagField(
        **_OPTIONAL, help_text="If false, the response cannot be retrieved or continued."
    )
    stream = FlagField(**_OPTIONAL)
    background = FlagField(**_OPTIONAL, help_text="Answer at once; retrieve the response later.")
    user = TextField(
        **_OPTIONAL,
        max_length=MAX_USER_CHARS,
        help_text="The name of a guest, who sees only their own responses.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_choice("tool_choice", attrs.get("tool_choice"), attrs.get("tools") or ())
        if attrs.get("background") and attrs.get("store") is False:
            said = "A response in the background must be stored, or nobody could retrieve it."
            raise serializers.ValidationError({"background": [said]})
        if attrs.get("previous_response_id") and "chat_id" in (attrs.get("metadata") or {}):
            said = "This cannot be combined with `metadata.chat_id`, which names a stored chat."
            raise serializers.ValidationError({"previous_response_id": [said]})
        return attrs
