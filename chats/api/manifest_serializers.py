"""Define the shape of a turn's manifest (`chats.context.manifest`): for OpenAPI, and as an order.

A manifest is not validated: it is written once and returned as it was, with the texts that memories
have now.
"""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from chats.context.manifest import LEFT_OUT
from chats.models import ROLE_CHOICES


class _Part(serializers.Serializer[Any]):
    tokens = serializers.IntegerField()


class MessagePart(_Part):
    id = serializers.UUIDField()
    role = serializers.ChoiceField(ROLE_CHOICES)


class BlockPart(_Part):
    """An earlier part of the chat of which messages were recalled. Times are those of the messages."""

    id = serializers.UUIDField()
    from_at = serializers.DateTimeField()
    until_at = serializers.DateTimeField()
    relevance = serializers.FloatField()
    message_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="The messages that were shown, in their order."
    )
    pieces = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Which pieces of the block were shown: a long message has several.",
    )


class MemoryPart(_Part):
    id = serializers.UUIDField()
    content = serializers.CharField(
        allow_null=True, help_text="The current text; null if it was deleted."
    )
    relevance = serializers.FloatField()


class PassagePart(_Part):
    number = serializers.IntegerField(help_text="The number that the answer cites.")
    chunk_ids = serializers.ListField(child=serializers.UUIDField())
    document_id = serializers.UUIDField()
    relevance = serializers.FloatField()


class ToolPart(_Part):
    name = serializers.CharField()


class ScenePart(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True, help_text="null: no scene was near enough.")
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    is_pinned = serializers.BooleanField()
    scores = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Standard deviations above everyday talk, by scene.",
    )


class LeftOutPart(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["block", "tool", "file", "messages", "earlier messages"])
    code = serializers.ChoiceField(
        sorted(LEFT_OUT), required=False, help_text="Why; earlier releases recorded none."
    )
    reason = serializers.CharField(help_text="Why, in words.")
    id = serializers.UUIDField(required=False)
    name = serializers.CharField(required=False)
    count = serializers.IntegerField(required=False)


class ManifestSerializer(serializers.Serializer[Any]):
    """What went into the turn's request, with token counts, and what was left out and why."""

    model = serializers.CharField()
    model_fallback = serializers.CharField(
        allow_null=True, help_text="Why this is not the model that the assistant names."
    )
    assistant_id = serializers.UUIDField(allow_null=True)
    question_not_embedded = serializers.CharField(
        allow_null=True, help_text="Why only words were searched for, not meaning."
    )
    question_embedded_late_ms = serializers.IntegerField(
        allow_null=True,
        help_text="By how many milliseconds the question's vector came too late for the first "
        "request, if it came; a request of the turn after a tool call is made with it.",
    )
    system_prompts = serializers.ListField(child=serializers.CharField())
    scene = ScenePart(allow_null=True, help_text="null: the assistant has no scenes.")
    messages = MessagePart(many=True)
    history_is_cut = serializers.BooleanField(
        help_text="true: the chat has older messages than these."
    )
    blocks = BlockPart(many=True)
    memories = MemoryPart(many=True)
    passages = PassagePart(many=True)
    library_searched = serializers.BooleanField()
    untrusted = serializers.ListField(
        child=serializers.CharField(),
        help_text="Kinds of content in it that neither the user nor the assistant's owner wrote.",
    )
    tools = ToolPart(many=True)
    left_out = LeftOutPart(many=True)
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What the library's search could not do."
    )
    tokens = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Tokens by part; `limit` is the prompt's limit.",
    )
    cacheable_share = serializers.FloatField(
        help_text="Share of the request, from its start, that the next turn's request repeats."
    )
    form = serializers.DictField(help_text="How the parts were put together.")
    request_hash = serializers.CharField(help_text="SHA-256 of the request's messages.")
    request = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        allow_null=True,
        help_text="With ?request=true: the request's messages, rebuilt; null if something "
        "they were made of has been deleted.",
    )


def in_order(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's fields in the declared order; Postgres orders them by length."""
    known = map(str, ManifestSerializer().fields)
    return {name: manifest[name] for name in known if name in manifest} | dict(manifest)
