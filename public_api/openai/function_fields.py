"""Validate a client's own functions in a request: their schemas, the choice, the answer's form.

Shapes only. A schema must be one that a provider can use (`tools.calling.schema_check`), and all of
them together no longer than a model would read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from django.core.validators import RegexValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from engine.tools import MAX_OFFERED_TOOLS, ToolSpec
from public_api.openai.chatglm3_functions import as_list, schema_of
from public_api.openai.strict_fields import FlagField, TextField
from tools.calling.schema_check import schema_faults

MAX_DESCRIPTION_CHARS: Final = 10_000
MAX_TOOLS_BYTES: Final = 256_000
"""The most bytes of schemas, some 64,000 tokens: the model reads them with every request."""

FUNCTION_NAME: Final = RegexValidator(
    re.compile(r"\A[a-zA-Z0-9_-]{1,64}\Z"), "Use 1 to 64 of the characters a-z, A-Z, 0-9, _ and -."
)
MAX_PARAMS: Final = 200
MISNAMED: Final = ("input_schema", "inputSchema")
"""What other APIs call `parameters`: a schema under such a name must not be lost."""

CHOICES: Final = ("none", "auto", "required")


@extend_schema_field(OpenApiTypes.OBJECT)
class SchemaField(serializers.Field[dict[str, Any], Any, Any, Any]):
    """A JSON Schema of an object."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        faults = schema_faults(data)
        if faults:
            raise serializers.ValidationError(_nest_detail(*faults[0]))
        return {"type": "object", "properties": {}, **data}


def _nest_detail(place: str, said: str) -> Any:
    """Return an error about a nested field in REST framework's form."""
    detail: Any = [said]
    for step in reversed(place.split(".") if place else []):
        detail = {step: detail}
    return detail


class ParamInput(serializers.Serializer[Any]):
    """One parameter as ChatGLM3's clients describe it; what else they say of it is kept."""

    name = TextField(validators=[FUNCTION_NAME])
    description = TextField(required=False, allow_null=True, max_length=MAX_DESCRIPTION_CHARS)
    type = TextField(required=False, allow_null=True, max_length=200)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        read: dict[str, Any] = super().to_internal_value(data)
        if not isinstance(data.get("required"), bool | None):
            raise serializers.ValidationError({"required": ["Must be true or false."]})
        return {**data, **read}


@extend_schema_field(ParamInput(many=True))
class ParamsField(serializers.Field[dict[str, Any], Any, Any, Any]):
    """ChatGLM3's list of parameters; as a JSON Schema."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        params = BoundedListField(child=ParamInput(), max_length=MAX_PARAMS)
        return schema_of(params.run_validation(data))


class FunctionInput(serializers.Serializer[Any]):
    name = TextField(validators=[FUNCTION_NAME])
    description = TextField(
        required=False, allow_null=True, max_length=MAX_DESCRIPTION_CHARS, default=""
    )
    parameters = SchemaField(required=False, allow_null=True)
    params = ParamsField(
        required=False,
        allow_null=True,
        help_text="ChatGLM3's form of `parameters`.",
    )
    strict = FlagField(required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            misnamed = next((name for name in MISNAMED if data.get(name) is not None), None)
            if misnamed is not None:
                raise serializers.ValidationError({misnamed: ["Name it `parameters`."]})
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        params = attrs.pop("params", None)
        if params is None:
            return attrs
        if attrs.get("parameters") is not None:
            raise serializers.ValidationError({"params": ["Not beside `parameters`."]})
        return {**attrs, "parameters": SchemaField().run_validation(params)}


class OpenAIToolInput(serializers.Serializer[Any]):
    type = serializers.ChoiceField(["function"])
    function = FunctionInput()


class FunctionsField(BoundedListField):
    """Functions to offer, each name once; as `ToolSpec`s."""

    child: serializers.Serializer[Any] = FunctionInput()

    def __init__(self, **kwargs: Any) -> None:
        optional = {"required": False, "allow_null": True, "max_length": MAX_OFFERED_TOOLS}
        super().__init__(**optional | kwargs)

    def to_internal_value(self, data: Any) -> list[ToolSpec]:
        self.refuse_long(data)
        if len(orjson.dumps(data)) > MAX_TOOLS_BYTES:
            raise serializers.ValidationError(f"More than {MAX_TOOLS_BYTES:,} bytes of schemas.")
        specs = [_spec(self._function(given)) for given in super().to_internal_value(data)]
        names = [spec.name for spec in specs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise serializers.ValidationError(f"{twice} is there twice.")
        return specs

    def _function(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return given


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "object"}},
            {"type": "object", "additionalProperties": {"type": "object"}},
        ]
    }
)
class LegacyFunctionsField(FunctionsField):
    """A list, or ChatGLM3's object of functions by name."""

    def to_internal_value(self, data: Any) -> list[ToolSpec]:
        functions = as_list(data)
        if isinstance(data, dict):
            self.refuse_long(functions)
            self._check_names(data)
        return super().to_internal_value(functions)

    def _check_names(self, functions: Mapping[str, Any]) -> None:
        for name, function in functions.items():
            named = function.get("name", name) if isinstance(function, dict) else name
            if named != name:
                said = f"Here it is {name!r}, and there {named!r}."
                raise serializers.ValidationError({name: {"name": [said]}})


class ToolsField(FunctionsField):
    child = OpenAIToolInput()

    def _function(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        function: Mapping[str, Any] = given["function"]
        return function


def _spec(function: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=function["name"],
        description=function.get("description") or "",
        parameters=function.get("parameters") or {"type": "object", "properties": {}},
        strict=function.get("strict"),
    )


@extend_schema_field({"oneOf": [{"type": "string", "enum": list(CHOICES)}, {"type": "object"}]})
class ChoiceOfToolField(serializers.Field[Any, Any, Any, Any]):
    """`none`, `auto`, `required`, or the name of one function, in the form of `tool_choice`.

    `function_call` has no `type`, and the name at the top.
    """

    default_error_messages = {"invalid_type": "Must be none, auto, required, or name a function."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"required": False, "allow_null": True} | kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str) and data in CHOICES:
            return data
        named = data.get("function", data) if isinstance(data, dict) else None
        name = named.get("name") if isinstance(named, dict) else None
        if not isinstance(name, str) or data.get("type", "function") != "function":
            self.fail("invalid_type")
        return {"type": "function", "function": {"name": name}}


def check_choice(field: str, choice: Any, tools: Sequence[ToolSpec]) -> None:
    """Raise ValidationError if a function is named that is not one of the client's."""
    if isinstance(choice, Mapping):
        name = choice["function"]["name"]
        if name not in {tool.name for tool in tools}:
            raise serializers.ValidationError({field: [f"There is no function {name}."]})


class JsonSchemaInput(serializers.Serializer[Any]):
    name = TextField(validators=[FUNCTION_NAME])
    description = TextField(required=False, allow_null=True, max_length=MAX_DESCRIPTION_CHARS)
    schema = SchemaField(required=False, allow_null=True)
    strict = FlagField(required=False, allow_null=True)


class ResponseFormatInput(serializers.Serializer[Any]):
    """The answer's form; `text` if none is given."""

    type = serializers.ChoiceField(["text", "json_object", "json_schema"])
    json_schema = JsonSchemaInput(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["type"] == "json_schema" and not attrs.get("json_schema"):
            said = serializers.ErrorDetail("This format needs a schema.", code="required")
            raise serializers.ValidationError({"json_schema": [said]})
        return attrs


def response_format_of(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the provider's form of it; None for plain text."""
    if given is None or given["type"] == "text":
        return None
    if given["type"] == "json_object":
        return {"type": "json_object"}
    schema = {name: value for name, value in given["json_schema"].items() if value is not None}
    return {"type": "json_schema", "json_schema": schema}
