"""Validate POST /v1/chat/completions: known fields are read strictly, others are ignored."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from public_api.openai.function_fields import (
    ChoiceOfToolField,
    LegacyFunctionsField,
    ResponseFormatInput,
    ToolsField,
    check_choice,
)
from public_api.openai.serializers import MessagesField
from public_api.openai.strict_fields import (
    AsWrittenField,
    FlagField,
    NumberField,
    ObjectField,
    TextField,
    WholeNumberField,
)

MAX_MODEL_CHARS: Final = 200
MAX_USER_CHARS: Final = 150
MAX_OUTPUT_TOKENS: Final = 1_000_000
"""More than any model offers; each model's own maximum applies, too."""

MAX_WORD_CHARS: Final = 40
MAX_STOPS: Final = 4
MAX_STOP_CHARS: Final = 500
OPTIONAL: Final[dict[str, Any]] = {"required": False, "allow_null": True}
_TOKENS: Final = {**OPTIONAL, "min_value": 1, "max_value": MAX_OUTPUT_TOKENS}
_PENALTY: Final = {**OPTIONAL, "min_value": -2, "max_value": 2}


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
class StopField(BoundedListField):
    """A text, or a few of them."""

    child = TextField(max_length=MAX_STOP_CHARS, allow_blank=False)

    def to_internal_value(self, data: Any) -> list[str]:
        stops: list[str] = super().to_internal_value([data] if isinstance(data, str) else data)
        return stops


class OneField(WholeNumberField):
    default_error_messages = {"unsupported": "Only 1 is supported."}

    def to_internal_value(self, data: Any) -> int:
        if super().to_internal_value(data) != 1:
            self.fail("unsupported")
        return 1


class StreamOptionsInput(serializers.Serializer[Any]):
    include_usage = FlagField(**OPTIONAL)


class ChatMetadataField(ObjectField):
    """A free object but for `chat_id`: a wrong id must not be mistaken for no chat."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(data)
        if not isinstance(given.get("chat_id"), str | None):
            said = serializers.ErrorDetail("Must be a text.", code="invalid_type")
            raise serializers.ValidationError({"chat_id": [said]})
        return given


class CompletionInput(serializers.Serializer[Any]):
    """The body of a request. Other fields are ignored."""

    model = TextField(
        max_length=MAX_MODEL_CHARS,
        allow_blank=False,
        help_text="`assistant:<slug or id>` or an alias; GET /v1/models lists them.",
    )
    messages = MessagesField(needs_question=False)
    stream = FlagField(**OPTIONAL)
    stream_options = StreamOptionsInput(**OPTIONAL)
    n = OneField(**OPTIONAL)
    temperature = NumberField(**OPTIONAL, min_value=0, max_value=2)
    top_p = NumberField(**OPTIONAL, min_value=0, max_value=1)
    presence_penalty = NumberField(**_PENALTY)
    frequency_penalty = NumberField(**_PENALTY)
    top_k = AsWrittenField(**OPTIONAL)
    top_a = AsWrittenField(**OPTIONAL)
    min_p = AsWrittenField(**OPTIONAL)
    typical_p = AsWrittenField(**OPTIONAL)
    repetition_penalty = AsWrittenField(**OPTIONAL)
    thinking_budget = AsWrittenField(**OPTIONAL)
    reasoning_effort = TextField(**OPTIONAL, max_length=MAX_WORD_CHARS)
    verbosity = TextField(**OPTIONAL, max_length=MAX_WORD_CHARS)
    max_tokens = WholeNumberField(**_TOKENS)
    max_completion_tokens = WholeNumberField(**_TOKENS)
    stop = StopField(**OPTIONAL, max_length=MAX_STOPS)
    seed = WholeNumberField(**OPTIONAL, min_value=-(2**63), max_value=2**63 - 1)
    response_format = ResponseFormatInput(**OPTIONAL)
    tools = ToolsField()
    tool_choice = ChoiceOfToolField()
    parallel_tool_calls = FlagField(**OPTIONAL)
    functions = LegacyFunctionsField(help_text="Deprecated form of `tools`.")
    function_call = ChoiceOfToolField(help_text="Deprecated form of `tool_choice`.")
    user = TextField(
        **OPTIONAL,
        max_length=MAX_USER_CHARS,
        help_text="The name of a guest, who sees only their own chats.",
    )
    metadata = ChatMetadataField(
        **OPTIONAL, help_text="`chat_id` continues a stored chat; `new` starts one."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Add `writes_calls`: functions by name are those of ChatGLM3's clients."""
        functions = self.initial_data.get("functions")
        attrs["writes_calls"] = bool(functions) and isinstance(functions, dict)
        if attrs.get("tools") and attrs.get("functions"):
            raise serializers.ValidationError({"functions": ["Not beside `tools`."]})
        check_choice("tool_choice", attrs.get("tool_choice"), attrs.get("tools") or ())
        check_choice("function_call", attrs.get("function_call"), attrs.get("functions") or ())
        return attrs
