"""Validate OpenAI's messages strictly (`public_api.openai.messages`).

Unknown fields are ignored, wrong ones named. Images come as `data:` URLs or as addresses, which
Amber fetches itself: a provider would do it from its own network.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from engine.provider_fields import MAX_FIELDS_BYTES, brought_fields
from engine.tool_calls import CALL_FORM, read_chat_form
from public_api.openai.legacy_functions import as_tool_messages
from public_api.openai.messages import (
    SENDER,
    Image,
    Part,
    RemoteImage,
    RequestMessage,
    read_sender_mark,
)
from public_api.openai.strict_fields import OpaqueField, TextField, refuse_long_fields

ENTRY_BYTES: Final = 500
"""What a message, a part and a call count at least, of the bytes that a body may have: reading even
an empty one takes time."""

MAX_ENTRIES: Final[int] = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // ENTRY_BYTES
MAX_PARTS: Final = 100
MAX_IMAGES: Final = 20
"""The most images: each is decoded and encoded again, and a model's context holds few of them."""

MAX_CALLS: Final = 128
MAX_ID_CHARS: Final = 1_000
"""The longest id or name of a call, which can be whatever a model or its server wrote."""

MAX_URL_CHARS: Final = 2_000
ROLES: Final = ("system", "developer", "user", "assistant", "tool")

_IMAGE_URL = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,")
_NAME = re.compile(r"\A[^\s<|\\/>]{1,64}\Z")
"""OpenAI's own rule for names."""

_CONTENT_SCHEMA: Final[dict[str, Any]] = {
    "nullable": True,
    "oneOf": [
        {"type": "string"},
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["text", "image_url"]},
                    "text": {"type": "string"},
                    "image_url": {
                        "type": "object",
                        "properties": {"url": {"type": "string"}},
                        "required": ["url"],
                    },
                },
                "required": ["type"],
            },
        },
    ],
}


@extend_schema_field(_CONTENT_SCHEMA)
class PartsField(serializers.Field[tuple[Part, ...], Any, Any, Any]):
    """A text, or a list of text and image parts."""

    default_error_messages = {
        "form": "Must be text, or a list of parts.",
        "too_long": "At most {most} characters.",
        "too_many": "At most {most} parts.",
        "part": 'Must be {{"type": "text", "text"}} or {{"type": "image_url", "image_url": {{"url"}}}}.',
        "image": "Must be a data: URL of a PNG, JPEG, GIF or WebP image in base64, or an address.",
    }

    def to_internal_value(self, data: Any) -> tuple[Part, ...]:
        if isinstance(data, str):
            return (self._text(data),)
        if not isinstance(data, list):
            self.fail("form")
        if len(data) > MAX_PARTS:
            self.fail("too_many", most=MAX_PARTS)
        parts: list[Part] = []
        errors: dict[Any, Any] = {}
        for position, part in enumerate(data):
            try:
                parts.append(self._part(part))
            except serializers.ValidationError as error:
                errors[position] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return tuple(parts)

    def _part(self, part: Any) -> Part:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal") and isinstance(part.get(kind), str):
            return self._text(part[kind])
        shown = part.get("image_url") if kind == "image_url" else None
        if not isinstance(shown, dict) or not isinstance(shown.get("url"), str):
            self.fail("part")
        return self._image(shown["url"])

    def _text(self, text: str) -> str:
        if len(text) > settings.AMBER_MAX_MESSAGE_CHARS:
            self.fail("too_long", most=settings.AMBER_MAX_MESSAGE_CHARS)
        return text

    def _image(self, url: str) -> Image | RemoteImage:
        if url.startswith(("https://", "http://")) and len(url) <= MAX_URL_CHARS:
            return RemoteImage(url)
        head = _IMAGE_URL.match(url)
        if head is None:
            self.fail("image")
        try:
            return Image(base64.b64decode(url[head.end() :], validate=True))
        except binascii.Error:
            self.fail("image")


GOES_BACK: Final = (
    "Send it back as you received it: the model may refuse the conversation without it."
)


class CalledFunctionInput(serializers.Serializer[Any]):
    name = TextField(max_length=MAX_ID_CHARS, allow_blank=False)
    arguments = TextField(
        max_length=200_000, help_text="The string that the model wrote, unchanged."
    )


class ToolCallInput(serializers.Serializer[Any]):
    id = TextField(max_length=MAX_ID_CHARS, allow_blank=False)
    type = serializers.ChoiceField(["function"], default="function")
    function = CalledFunctionInput()
    extra_content = OpaqueField(required=False, allow_null=True, help_text=GOES_BACK)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Returns the call and `given`, all that was sent."""
        read = super().to_internal_value(data)
        refuse_long_fields(data, CALL_FORM)
        return {**read, "given": data}


class OpenAIMessageInput(serializers.Serializer[Any]):
    """One message; what it must hold depends on its role."""

    role = serializers.ChoiceField(ROLES)
    content = PartsField(required=False, allow_null=True)
    name = serializers.RegexField(_NAME, required=False, allow_null=True, max_length=64)
    tool_calls = BoundedListField(
        child=ToolCallInput(), required=False, allow_null=True, max_length=MAX_CALLS
    )
    tool_call_id = TextField(required=False, allow_null=True, max_length=MAX_ID_CHARS)
    reasoning_content = TextField(
        required=False, allow_null=True, max_length=MAX_FIELDS_BYTES, help_text=GOES_BACK
    )
    amber_sender = TextField(
        required=False,
        allow_null=True,
        max_length=MAX_ID_CHARS,
        help_text="Send it back as you received it.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        read = super().to_internal_value(data)
        refuse_long_fields(data)
        return {**read, "brought": data}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Returns {"given": RequestMessage}."""
        role, content = attrs["role"], attrs.get("content")
        calls = attrs.get("tool_calls") or []
        if content is None and not (role == "assistant" and calls):
            raise serializers.ValidationError(
                {"content": ["A message of this role needs content."]}
            )
        if role != "user" and any(not isinstance(part, str) for part in content or ()):
            raise serializers.ValidationError({"content": ["Only users may send images."]})
        if calls and role != "assistant":
            raise serializers.ValidationError({"tool_calls": ["Only assistants can call tools."]})
        if role == "tool" and not attrs.get("tool_call_id"):
            raise serializers.ValidationError(
                {"tool_call_id": ["Name the call that this answers."]}
            )
        is_said = role == "assistant"
        mark = attrs.get(SENDER) or "" if is_said else ""
        brought = brought_fields(attrs["brought"], sender=mark) if is_said else {}
        sender, fields = read_sender_mark(mark, brought)
        return {
            "given": RequestMessage(
                role=role,
                parts=content or (),
                name=attrs.get("name") or "",
                calls=tuple(
                    read_chat_form(call, brought_fields(call["given"], CALL_FORM, sender=sender))
                    for call in calls
                ),
                call_id=attrs.get("tool_call_id") or "",
                provider_fields=fields,
                sender=sender,
            )
        }


class ConversationField(BoundedListField):
    """A list of messages, which with their parts and calls are at most `max_length`."""

    default_error_messages = {
        "max_length": "At most {max_length:,} messages, parts and calls together. "
        "Leave out the oldest messages: no model reads as many."
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_empty": False, "max_length": MAX_ENTRIES} | kwargs)

    def refuse_long(self, data: Any) -> None:
        super().refuse_long(data)
        if not isinstance(data, list):
            return  # no conversation, which is said later
        messages = (each for each in data if isinstance(each, dict))
        lists = (value for each in messages for value in each.values() if isinstance(value, list))
        if sum(map(len, lists), len(data)) > (self.max_length or 0):
            self.fail("max_length", max_length=self.max_length)


class MessagesField(ConversationField):
    """A whole conversation: every call is answered right after it, and somebody asks, unless
    `needs_question` is false. Legacy calls and their results are read as today's."""

    child = OpenAIMessageInput()

    def __init__(self, *, needs_question: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._needs_question = needs_question

    def to_internal_value(self, data: Any) -> list[RequestMessage]:
        self.refuse_long(data)
        given = super().to_internal_value(as_tool_messages(data))
        messages = [message["given"] for message in given]
        errors = _find_unanswered(messages)
        if errors:
            raise serializers.ValidationError(errors)
        if self._needs_question and not any(message.asks for message in messages):
            raise serializers.ValidationError("Send at least one user message with content.")
        parts = (part for message in messages for part in message.parts)
        images = sum(not isinstance(part, str) for part in parts)
        if images > MAX_IMAGES:
            raise serializers.ValidationError(f"At most {MAX_IMAGES} images.")
        return messages


def _find_unanswered(messages: Sequence[RequestMessage]) -> dict[Any, Any]:
    """Return the errors of calls and results, by the message's number."""
    errors: dict[Any, Any] = {}
    open_calls: Counter[str] = Counter()
    asked_at = 0
    for number, message in enumerate(messages):
        if message.role == "tool":
            if not open_calls[message.call_id]:
                errors[number] = {
                    "tool_call_id": ["This does not answer a call of the message before it."]
                }
            open_calls[message.call_id] -= 1
            continue
        if open_calls.total() > 0:
            errors[asked_at] = {"tool_calls": ["Not all of them are answered by what follows."]}
        open_calls, asked_at = Counter(call.id for call in message.calls), number
    if open_calls.total() > 0:
        errors[asked_at] = {"tool_calls": ["Not all of them are answered by what follows."]}
    return errors


class ChatProxyInput(serializers.Serializer[Any]):
    """The body of POST /chat. Other fields are ignored."""

    messages = MessagesField()
    model = TextField(
        required=False,
        allow_null=True,
        max_length=200,
        help_text="An alias from GET /api/v1/models/. Without one the default model answers.",
    )


@extend_schema_field(OpenApiTypes.OBJECT)
class AnyMessageField(serializers.DictField):
    """A message in OpenAI's form."""


class ChatProxySerializer(serializers.Serializer[Any]):
    messages = serializers.ListField(
        child=AnyMessageField(),
        help_text="The conversation: what you sent, calls with their results, the answer.",
    )


class OpenAIErrorBodySerializer(serializers.Serializer[Any]):
    message = serializers.CharField()
    type = serializers.CharField()
    param = serializers.CharField(allow_null=True)
    code = serializers.CharField(allow_null=True)


class OpenAIErrorSerializer(serializers.Serializer[Any]):
    """Errors under /v1 have OpenAI's form."""

    error = OpenAIErrorBodySerializer()
