"""Validate `input` of POST /v1/responses: a text, or a list of items, as messages and references.

Items of reasoning are skipped; files and audio are refused.
https://platform.openai.com/docs/api-reference/responses/create#responses-create-input
"""

from collections.abc import Sequence
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from engine.provider_fields import MAX_FIELDS_BYTES, MESSAGE_FORM, brought_fields
from engine.tool_calls import CALL_FORM, read_item_form
from public_api.openai.messages import SENDER, Image, Part, RemoteImage, RequestMessage
from public_api.openai.serializers import (
    MAX_ID_CHARS,
    MAX_IMAGES,
    ConversationField,
    PartsField,
)
from public_api.openai.strict_fields import OpaqueField, TextField, refuse_long_fields
from public_api.responses.items import OF_CALL, Item, Reference

MAX_ARGUMENTS_CHARS: Final = 200_000
MAX_REFERENCES: Final = 1_000
"""The most items named by their ids: each is looked up."""

_ITEM_FORM: Final = MESSAGE_FORM | CALL_FORM | {"extra_content", OF_CALL}
_NO_FORM: Final = CALL_FORM | {"amber_sender"}

PASSED_OVER: Final = frozenset({"reasoning"})

_SCHEMA: Final[dict[str, Any]] = {
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}}}},
    ]
}


class ItemPartsField(PartsField):
    """A text, or a list of an item's parts."""

    default_error_messages = {
        "part": "Must be a part of type input_text, output_text, refusal or input_image.",
    }

    def _part(self, part: Any) -> Part:
        kind = part.get("type") if isinstance(part, dict) else None
        held = {"refusal": "refusal", "input_image": "image_url"}.get(str(kind), "text")
        said = part.get(held) if kind in _PART_TYPES else None
        if not isinstance(said, str):
            self.fail("part")
        return self._image(said) if kind == "input_image" else self._text(said)


_PART_TYPES: Final = ("input_text", "output_text", "text", "refusal", "input_image")


class MessageItemInput(serializers.Serializer[Any]):
    role = serializers.ChoiceField(["user", "assistant", "system", "developer"])
    content = ItemPartsField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        parts: Sequence[Part] = attrs["content"]
        if attrs["role"] != "user" and any(isinstance(p, Image | RemoteImage) for p in parts):
            raise serializers.ValidationError({"content": ["Only users may send images."]})
        return {"item": RequestMessage(role=attrs["role"], parts=tuple(parts))}


class CallItemInput(serializers.Serializer[Any]):
    call_id = TextField(max_length=MAX_ID_CHARS, allow_blank=False)
    name = TextField(max_length=MAX_ID_CHARS, allow_blank=False)
    arguments = TextField(max_length=MAX_ARGUMENTS_CHARS)
    extra_content = OpaqueField(required=False, allow_null=True)
    reasoning_content = TextField(required=False, allow_null=True, max_length=MAX_FIELDS_BYTES)
    amber_sender = TextField(required=False, allow_null=True, max_length=MAX_ID_CHARS)
    amber_call = OpaqueField(required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        read = super().to_internal_value(data)
        refuse_long_fields(data, _NO_FORM)
        return {**read, "given": data}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        sender, given = attrs.get(SENDER) or "", attrs["given"]
        of_call = attrs.get(OF_CALL) or {}
        of_call |= {name: given[name] for name in ("extra_content",) if given.get(name)}
        fields = brought_fields(of_call, CALL_FORM, sender=sender)
        return {
            "item": RequestMessage(
                role="assistant",
                calls=(read_item_form(attrs, fields),),
                provider_fields=brought_fields(given, _ITEM_FORM, sender=sender),
                sender=sender,
            )
        }


class ResultItemInput(serializers.Serializer[Any]):
    call_id = TextField(max_length=MAX_ID_CHARS, allow_blank=False)
    output = ItemPartsField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        parts: Sequence[Part] = attrs["output"]
        if any(not isinstance(part, str) for part in parts):
            raise serializers.ValidationError({"output": ["Results are text."]})
        return {
            "item": RequestMessage(role="tool", parts=tuple(parts), call_id=attrs["call_id"]),
        }


class ReferenceItemInput(serializers.Serializer[Any]):
    id = TextField(max_length=MAX_ID_CHARS, allow_blank=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"item": Reference(attrs["id"])}


KINDS: Final[dict[str, type[serializers.Serializer[Any]]]] = {
    "message": MessageItemInput,
    "function_call": CallItemInput,
    "function_call_output": ResultItemInput,
    "item_reference": ReferenceItemInput,
}


class ItemField(serializers.Field[Item | None, Any, Any, Any]):
    default_error_messages = {
        "form": "Must be an object.",
        "kind": "Must be one of {kinds}.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._shapes = {kind: shape() for kind, shape in KINDS.items()}  # dear to make per item

    def to_internal_value(self, data: Any) -> Item | None:
        if not isinstance(data, dict):
            self.fail("form")
        kind = data.get("type") or ("message" if "role" in data else "item_reference")
        if isinstance(kind, str) and kind in PASSED_OVER:
            return None
        if not isinstance(kind, str) or kind not in KINDS:
            said = self.error_messages["kind"].format(kinds=", ".join(KINDS))
            raise serializers.ValidationError({"type": [said]})
        item: Item = self._shapes[kind].run_validation(data)["item"]
        return item


@extend_schema_field(_SCHEMA)
class ItemsField(ConversationField):
    """A list of items, or a text, which is one user message."""

    child = ItemField()

    def to_internal_value(self, data: Any) -> list[Item]:
        if isinstance(data, str):
            data = [{"role": "user", "content": data}]
        items = [item for item in super().to_internal_value(data) if item is not None]
        messages = [item for item in items if isinstance(item, RequestMessage)]
        if len(items) - len(messages) > MAX_REFERENCES:
            raise serializers.ValidationError(f"At most {MAX_REFERENCES:,} items by their ids.")
        images = sum(not isinstance(p, str) for message in messages for p in message.parts)
        if images > MAX_IMAGES:
            raise serializers.ValidationError(f"At most {MAX_IMAGES} images.")
        return items
