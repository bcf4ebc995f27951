"""Validate what guests send, and describe what a public assistant tells about itself."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from amber.lib.rest.bounded_fields import PlainNameField
from assistants.models import Assistant
from chats.api.serializers import ContentField, FileIdsField, check_role_fields
from engine.messages import MessageRole

MAX_TOKEN_CHARS = 400


class CardSerializer(serializers.Serializer[Assistant]):
    """What anybody may know of a public assistant: never its prompt, model or makers."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    greeting = serializers.CharField()
    suggested_questions = serializers.ListField(child=serializers.CharField())
    has_library = serializers.SerializerMethodField()
    browses_web = serializers.SerializerMethodField()
    takes_files = serializers.BooleanField(source="guest_files")
    max_message_chars = serializers.SerializerMethodField()

    def get_has_library(self, assistant: Assistant) -> bool:
        return assistant.library_id is not None

    def get_browses_web(self, assistant: Assistant) -> bool:
        return not assistant.disable_web_browsing

    def get_max_message_chars(self, assistant: Assistant) -> int:
        return int(settings.AMBER_GUEST_MAX_MESSAGE_CHARS)


class GuestTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField()
    guest_id = serializers.CharField()
    expires_at = serializers.DateTimeField()


class GuestChatInput(serializers.Serializer[Any]):
    name = PlainNameField(max_length=255, required=False, allow_blank=True)


class GuestMessageInput(serializers.Serializer[Any]):
    """A guest's message: a question or a file, never an instruction or an answer."""

    role = serializers.ChoiceField([MessageRole.HUMAN, MessageRole.FILE], default=MessageRole.HUMAN)
    content = ContentField(
        default="", allow_blank=True, max_length=settings.AMBER_GUEST_MAX_MESSAGE_CHARS
    )
    file_ids = FileIdsField()
    file_id = serializers.UUIDField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return check_role_fields(attrs)


class ClaimInput(serializers.Serializer[Any]):
    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)


class ClaimedSerializer(serializers.Serializer[Any]):
    """The number of rows that became yours."""

    chats = serializers.IntegerField()
    files = serializers.IntegerField()
    memories = serializers.IntegerField()
