"""Define the shapes of chats, messages and turns: input, and output (`chats.messages.wire`)."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedDictField, BoundedListField, PlainNameField
from amber.lib.rest.wire_serializers import serializer_of
from chats.messages.roles import POSTED_ROLES
from chats.messages.wire import (
    ChatWire,
    ExportWire,
    ImportReportWire,
    MessageWire,
    NamedWire,
    PostedWire,
    TurnWire,
)
from chats.models import MAX_MODEL_CHARS, ROLE_CHOICES, Chat, ChatMessage, Turn
from engine.messages import MessageRole

MAX_TRY_MESSAGES = 200
MAX_DECISIONS = 1_000
"""The most decisions in one request: more than the calls that a turn can wait for."""
MAX_QUESTION_FILES = 100
MAX_EXPORTED_MESSAGES = 20_000
"""In one chat that is imported in Amber's form."""


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


class _ChatFields(serializers.Serializer[Chat]):
    name = PlainNameField(max_length=255, required=False, allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    prompt = ContentField(required=False, allow_null=True, allow_blank=True)
    pinned = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)


class ChatInput(_ChatFields):
    pinned_scene_id = serializers.UUIDField(required=False, allow_null=True)


class FileIdsField(BoundedListField):
    """The files that a question is about, in their order."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            child=serializers.UUIDField(),
            required=False,
            max_length=MAX_QUESTION_FILES,
            help_text="Files that the question is about: they become messages of role `file` before "
            "it. A question with files needs no text.",
            **kwargs,
        )


class QuestionInput(serializers.Serializer[ChatMessage]):
    content = ContentField(default="", allow_blank=True)
    file_ids = FileIdsField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return check_role_fields({"role": MessageRole.HUMAN, **attrs})


class NewChatInput(ChatInput):
    question = QuestionInput(
        required=False,
        help_text="Ask at once: the chat and its first turn are created together, or neither is. "
        "Follow the turn by the chat's `live_turn_id`.",
    )


class MessageInput(serializers.Serializer[ChatMessage]):
    role = serializers.ChoiceField(ROLE_CHOICES, default=MessageRole.HUMAN)
    content = ContentField(default="", allow_blank=True)
    file_ids = FileIdsField()
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    file_id = serializers.UUIDField(required=False, allow_null=True)
    parent_id = serializers.UUIDField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return check_role_fields(attrs)


def check_role_fields(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message if it has what its role needs. Raises ValidationError."""
    policy = POSTED_ROLES.get(message["role"])
    has_files = bool(message.get("file_ids"))
    if has_files and not (policy and policy.starts_turn):
        raise serializers.ValidationError({"file_ids": ["Only a question can have files."]})
    is_blank = not message["content"].strip() and not has_files
    if policy is not None and policy.needs_content and is_blank:
        raise serializers.ValidationError({"content": ["Messages with this role must have text."]})
    if message["role"] == MessageRole.FILE and not message.get("file_id"):
        raise serializers.ValidationError({"file_id": ["A file message needs a file."]})
    return message


class EditInput(serializers.Serializer[ChatMessage]):
    content = ContentField(allow_blank=True)


class RegenerateInput(serializers.Serializer[ChatMessage]):
    assistant_id = serializers.UUIDField(required=False, allow_null=True)


class BranchInput(serializers.Serializer[Chat]):
    leaf_id = serializers.UUIDField(required=False, help_text="The message that ends the branch.")
    message_id = serializers.UUIDField(
        required=False, help_text="Instead: the newest branch that goes through this message."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError({"leaf_id": ["Send either this or `message_id`."]})
        return attrs


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
    role = serializers.ChoiceField(ROLE_CHOICES)
    content = ContentField(allow_blank=True)
    assistant_id = serializers.UUIDField(required=False, allow_null=True)
    tool_call = serializers.DictField(required=False, allow_null=True)
    provider_fields = serializers.DictField(required=False, allow_null=True)
    reasoning = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, trim_whitespace=False
    )
    model = serializers.CharField(required=False, allow_null=True, max_length=MAX_MODEL_CHARS)
    file_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Kept if it is a file of yours."
    )
    created_at = serializers.DateTimeField(required=False)


class ImportedChat(_ChatFields):
    active_leaf_id = serializers.CharField(required=False, allow_null=True, max_length=64)
    created_at = serializers.DateTimeField(required=False)


class ImportInput(serializers.Serializer[Chat]):
    assistant_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The chat's assistant. Default: the one it was exported with, if you may use it.",
    )
    chat = ImportedChat(required=False)
    messages = BoundedListField(child=ImportedMessage(), max_length=MAX_EXPORTED_MESSAGES)


class ImportOptionsInput(serializers.Serializer[Chat]):
    assistant_id = serializers.UUIDField(
        required=False,
        help_text="The assistant of every chat. Default: the one a chat was exported with, if you "
        "may use it.",
    )
    again = serializers.BooleanField(
        default=False, help_text="true: take in copies of what was taken in before, too."
    )


class ImportUpload(ImportOptionsInput):
    """`file` may be given several times."""

    file = serializers.FileField()


# -- Out ----------------------------------------------------------------------------------------


ChatSerializer = serializer_of(ChatWire)
MessageSerializer = serializer_of(MessageWire)
TurnSerializer = serializer_of(TurnWire)
PostedSerializer = serializer_of(PostedWire)
ExportSerializer = serializer_of(ExportWire)
ImportReportSerializer = serializer_of(ImportReportWire)
NamedSerializer = serializer_of(NamedWire)


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
