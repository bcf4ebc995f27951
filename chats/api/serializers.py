"""Define the shapes of chats, messages and turns: input, and output (`chats.messages.wire`)."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedDictField, BoundedListField
from chats.messages import wire
from chats.messages.roles import POSTED_ROLES
from chats.models import Chat, ChatMessage, ChatOwner, MessageRole, Turn, TurnStatus
from libraries.api.file_serializers import FileSerializer
from libraries.api.search_serializers import PassageSerializer

MAX_TRY_MESSAGES = 200
MAX_DECISIONS = 1_000
"""The most decisions in one request: more than the calls that a turn can wait for."""
MAX_IMPORTED_MESSAGES = 20_000


class ContentField(serializers.CharField):
    """Text of a message, kept as written: at most AMBER_MAX_MESSAGE_CHARS; white space is blank."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", settings.AMBER_MAX_MESSAGE_CHARS)
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not self.allow_blank and not text.strip():
            self.fail("blank")
        return text


# -- In -----------------------------------------------------------------------------------------


class ChatInput(serializers.Serializer[Chat]):
    name = serializers.CharField(max_length=255, required=False, allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    prompt = ContentField(required=False, allow_null=True, allow_blank=True)
    pinned_scene_id = serializers.UUIDField(required=False, allow_null=True)


class MessageInput(serializers.Serializer[ChatMessage]):
    role = serializers.ChoiceField(MessageRole.choices, default=MessageRole.HUMAN)
    content = ContentField(default="", allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    file_id = serializers.UUIDField(required=False, allow_null=True)
    parent_id = serializers.UUIDField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return complete(attrs)


def complete(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message if it has what its role needs. Raises ValidationError."""
    policy = POSTED_ROLES.get(message["role"])
    if policy is not None and policy.needs_content and not message["content"].strip():
        raise serializers.ValidationError({"content": ["Messages with this role need some text."]})
    if message["role"] == MessageRole.FILE and not message.get("file_id"):
        raise serializers.ValidationError({"file_id": ["A file message needs a file."]})
    return message


class EditInput(serializers.Serializer[ChatMessage]):
    content = ContentField(allow_blank=True)


class RegenerateInput(serializers.Serializer[ChatMessage]):
    assistant_id = serializers.UUIDField(required=False, allow_null=True)


class BranchInput(serializers.Serializer[Chat]):
    leaf_id = serializers.UUIDField()


class DecisionField(serializers.BooleanField):
    """Accepts only true and false, not what DRF takes for them."""

    default_error_messages = {"invalid": "Must be true to allow the call or false to decline it."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class ApproveInput(serializers.Serializer[Turn]):
    """`decisions` are by call id: true allows the call, false declines it."""

    decisions = BoundedDictField(
        child=DecisionField(), allow_empty=False, max_entries=MAX_DECISIONS
    )


class TryMessage(serializers.Serializer[Any]):
    role = serializers.ChoiceField([MessageRole.HUMAN, MessageRole.ASSISTANT, MessageRole.SYSTEM])
    content = ContentField()


class TryInput(serializers.Serializer[Turn]):
    """`content` is the question; `history` is what was said before it."""

    content = ContentField()
    history = BoundedListField(child=TryMessage(), required=False, max_length=MAX_TRY_MESSAGES)


class ImportedMessage(serializers.Serializer[ChatMessage]):
    """`id` and `parent_id` connect the messages of one import; both may be left out."""

    id = serializers.CharField(required=False, max_length=64)
    parent_id = serializers.CharField(required=False, allow_null=True, max_length=64)
    role = serializers.ChoiceField(MessageRole.choices)
    content = ContentField(allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    tool_call = serializers.DictField(required=False, allow_null=True)
    provider_fields = serializers.DictField(required=False, allow_null=True)
    created_at = serializers.DateTimeField(required=False)


class ImportedChat(serializers.Serializer[Chat]):
    name = serializers.CharField(max_length=255, required=False, allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    prompt = ContentField(required=False, allow_null=True, allow_blank=True)
    active_leaf_id = serializers.CharField(required=False, allow_null=True, max_length=64)


class ImportInput(serializers.Serializer[Chat]):
    assistant_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The chat's assistant. Default: the one it was exported with, if you may use it.",
    )
    chat = ImportedChat(required=False)
    messages = BoundedListField(child=ImportedMessage(), max_length=MAX_IMPORTED_MESSAGES)


# -- Out ----------------------------------------------------------------------------------------


class NamedSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


class ChatSerializer(serializers.Serializer[Chat]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    assistant_id = serializers.UUIDField(allow_null=True)
    can_be_asked = serializers.BooleanField(
        help_text="false: the chat has no assistant that you may use. Give it one, or name one "
        "with each question; a question without one is answered with 400 `no_assistant`."
    )
    prompt = serializers.CharField(allow_null=True)
    owner = serializers.ChoiceField(ChatOwner.choices)
    guest_id = serializers.CharField(allow_null=True)
    expired_at = serializers.DateTimeField(allow_null=True)
    pinned_scene_id = serializers.UUIDField(allow_null=True)
    active_leaf_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def to_representation(self, instance: Chat) -> dict[str, Any]:
        return wire.chat_wire(instance)


class ToolCallSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.CharField(help_text="The raw string the model wrote.")
    reply_id = serializers.CharField(allow_null=True)


class MessageSerializer(serializers.Serializer[ChatMessage]):
    """A stored message, as in events."""

    id = serializers.UUIDField()
    chat_id = serializers.UUIDField()
    parent_id = serializers.UUIDField(allow_null=True)
    sibling_ids = serializers.ListField(child=serializers.UUIDField())
    role = serializers.ChoiceField(MessageRole.choices)
    content = serializers.CharField()
    assistant_id = serializers.UUIDField(allow_null=True)
    assistant = NamedSerializer(allow_null=True)
    file_id = serializers.UUIDField(allow_null=True)
    file = FileSerializer(allow_null=True)
    tool_call = ToolCallSerializer(allow_null=True)
    hidden = serializers.BooleanField()
    citations = PassageSerializer(many=True)
    turn_id = serializers.UUIDField(allow_null=True)
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class TurnErrorSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="A code of docs/errors.md, such as `provider_timeout`.")
    message = serializers.CharField(help_text="An explanation for people.")
    retryable = serializers.BooleanField(help_text="true: the same question may succeed later.")


class TurnUsageSerializer(serializers.Serializer[Any]):
    prompt_tokens = serializers.IntegerField(required=False)
    completion_tokens = serializers.IntegerField(required=False)
    total_tokens = serializers.IntegerField(required=False)
    cached_tokens = serializers.IntegerField(required=False)


class WaitingCallSerializer(serializers.Serializer[Any]):
    call_id = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.CharField(help_text="The raw string the model wrote.")
    approved = serializers.BooleanField(allow_null=True, help_text="null: not decided yet.")


class TurnSerializer(serializers.Serializer[Turn]):
    id = serializers.UUIDField()
    chat_id = serializers.UUIDField(allow_null=True)
    status = serializers.ChoiceField(TurnStatus.choices)
    error = TurnErrorSerializer(allow_null=True)
    attempts = serializers.IntegerField()
    usage = TurnUsageSerializer()
    finish_reason = serializers.CharField(
        allow_null=True, help_text="The provider's reason, such as stop, length or content_filter."
    )
    waiting_calls = WaitingCallSerializer(many=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: Turn) -> dict[str, Any]:
        return wire.turn_wire(instance)


class PostedSerializer(serializers.Serializer[Any]):
    message = MessageSerializer()
    turn = TurnSerializer(allow_null=True)


class ExportedMessageSerializer(MessageSerializer):
    provider_fields = serializers.DictField(
        required=False, help_text="Data for the model alone, which may refuse the chat without it."
    )


class ExportSerializer(serializers.Serializer[Any]):
    chat = ChatSerializer()
    messages = ExportedMessageSerializer(many=True)


class FoundMessageSerializer(serializers.Serializer[Any]):
    message = MessageSerializer()
    chat = NamedSerializer()
    score = serializers.FloatField()


class FoundMessagesSerializer(serializers.Serializer[Any]):
    results = FoundMessageSerializer(many=True)


class SourceSerializer(serializers.Serializer[Any]):
    message = MessageSerializer()
    chat = NamedSerializer()


class SourcesSerializer(serializers.Serializer[Any]):
    results = SourceSerializer(many=True)
