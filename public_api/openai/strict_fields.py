"""Read JSON types strictly: a number is no text, a text no number, true is no 1.

REST framework's own fields take `"1"` for 1; OpenAI's API refuses it, and names the right type.
"""

import math
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from engine.provider_fields import (
    MAX_FIELDS_BYTES,
    MESSAGE_FORM,
    brought_fields,
    is_too_long,
    storable,
)


class TextField(serializers.CharField):
    """A text as it was written."""

    default_error_messages = {"invalid_type": "Must be a text."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True} | kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_type")
        return str(super().to_internal_value(data))


class NumberField(serializers.FloatField):
    """A finite number, which may be whole."""

    default_error_messages = {"invalid_type": "Must be a number."}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            self.fail("invalid_type")
        return float(data)


class AsWrittenField(NumberField):
    """A finite number, passed on as it was written: a whole one stays whole."""

    def to_internal_value(self, data: Any) -> float:
        super().to_internal_value(data)
        number: float = data
        return number


class WholeNumberField(serializers.IntegerField):
    default_error_messages = {"invalid_type": "Must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid_type")
        return data


class FlagField(serializers.BooleanField):
    default_error_messages = {"invalid_type": "Must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid_type")
        return data


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectField(serializers.Field[dict[str, Any], Any, Any, Any]):
    default_error_messages = {"invalid_type": "Must be an object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid_type")
        return data


class OpaqueField(ObjectField):
    """An object of a provider's, whose contents are not read."""

    default_error_messages = {"too_long": f"More than {MAX_FIELDS_BYTES:,} bytes, or too deep."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(data)
        if is_too_long(given):
            self.fail("too_long")
        kept: dict[str, Any] = storable(given)
        return kept


def refuse_long_fields(data: Any, form: frozenset[str] = MESSAGE_FORM) -> None:
    """Raise ValidationError if a message or a call brings too much beside its form."""
    if isinstance(data, dict) and is_too_long(brought_fields(data, form, sender="any")):
        raise serializers.ValidationError(OpaqueField.default_error_messages["too_long"])
