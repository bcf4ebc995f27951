"""Make serializers of wire forms (`amber.lib.wire_fields`), for the OpenAPI document alone.

What goes out is what the wire functions make: nothing is serialised here, since REST framework
takes several times as long.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from django.db.models import Choices
from rest_framework import serializers

Field = serializers.Field[Any, Any, Any, Any]

_FIELDS: Final[Mapping[Any, Callable[..., Field]]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
    UUID: serializers.UUIDField,
    date: serializers.DateField,
    datetime: serializers.DateTimeField,
}


@cache
def serializer_of(form: type) -> type[serializers.Serializer[Any]]:
    """Return the serializer that describes a wire form: `ChatWire` as the component `Chat`."""
    name = form.__name__.removesuffix("Wire") + "Serializer"
    hints = get_type_hints(form, include_extras=True)
    optional: frozenset[str] = form.__optional_keys__  # type: ignore[attr-defined]
    fields = {
        field: _field_of(hint, **({"required": False} if field in optional else {}))
        for field, hint in hints.items()
    }
    return type(name, (serializers.Serializer,), {"__doc__": form.__doc__ or "", **fields})


def _field_of(hint: Any, **options: Any) -> Field:
    """Return the field of an annotation. `options` are what was read from around it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _field_of(arguments[0], **options)
    if origin is Annotated:
        return _annotated_field(arguments[0], arguments[1:], options)
    if origin in (Union, UnionType):
        (only,) = (each for each in arguments if each is not NoneType)
        return _field_of(only, allow_null=True, **options)
    if origin is Literal:
        return serializers.ChoiceField(list(arguments), **options)
    if origin is list and is_typeddict(arguments[0]):
        return serializer_of(arguments[0])(many=True, **options)
    if origin is list:
        return serializers.ListField(child=_field_of(arguments[0]), **options)
    if origin is dict:
        values = {} if arguments[1] is Any else {"child": _field_of(arguments[1])}
        return serializers.DictField(**options | values)
    if is_typeddict(hint):
        return serializer_of(hint)(**options)
    if isinstance(hint, list | tuple):
        return serializers.ChoiceField(hint, **options)
    if issubclass(hint, Choices):
        return serializers.ChoiceField(hint.choices, **options)
    return _FIELDS[hint](**options)


def _annotated_field(hint: Any, notes: tuple[Any, ...], options: dict[str, Any]) -> Field:
    """Read what stands beside a type: words for people, its choices, or what its text means."""
    for note in notes:
        if isinstance(note, str):
            options["help_text"] = note
        else:
            hint = note
    return _field_of(hint, **options)
