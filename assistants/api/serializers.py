"""Define the wire form of assistants, bindings and scene prompts; reads and writes no rows."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api.serializers import MAX_ORIGINS, browser_origin
from accounts.tenancy.access import access_to
from accounts.tenant_rows import ACCESS, Right
from amber.lib.rest.bounded_fields import BoundedListField, PlainNameField
from assistants.models import MAX_QUESTIONS, Assistant, AssistantTool, ScenePrompt
from assistants.slugs import looks_like_id
from tools.models import Tool

MAX_FUNCTIONS = 128
MAX_EXAMPLES = 50
MAX_TEXT_CHARS = 2_000
READ_ONLY = ["id", "created_at", "updated_at"]

_PROMPT = {"max_length": settings.AMBER_MAX_MESSAGE_CHARS, "trim_whitespace": False}


class AssistantSerializer(serializers.ModelSerializer[Assistant]):
    name = PlainNameField(max_length=200)
    slug = serializers.SlugField(
        max_length=80,
        required=False,
        help_text="Unique in the organization. Made from the name if omitted.",
    )
    library_id = serializers.UUIDField(required=False, allow_null=True)
    user_id = serializers.UUIDField(read_only=True, allow_null=True)
    access = serializers.SerializerMethodField(help_text=ACCESS)
    disabled_builtin_tools = BoundedListField(
        child=serializers.CharField(max_length=64), required=False, max_length=MAX_FUNCTIONS
    )
    suggested_questions = BoundedListField(
        child=serializers.CharField(max_length=300),
        required=False,
        max_length=MAX_QUESTIONS,
        help_text="Offered in an empty chat, to be asked by one click.",
    )
    public_origins = BoundedListField(
        child=serializers.CharField(max_length=300),
        required=False,
        max_length=MAX_ORIGINS,
        help_text="Sites whose visitors can be guests, such as `https://example.com`. Empty: any "
        "site.",
    )

    class Meta:
        model = Assistant
        fields = [
            "id",
            "name",
            "slug",
            "description",
            "greeting",
            "suggested_questions",
            "prompt",
            "model",
            "temperature",
            "top_p",
            "library_id",
            "user_id",
            "shared",
            "access",
            "public",
            "public_origins",
            "guest_files",
            "disable_default_prompt",
            "disable_web_browsing",
            "disable_memory",
            "enable_memory_for_assistant_api",
            "disabled_builtin_tools",
            "untrusted_calls",
            "hide_reasoning",
            "total_token_usage",
            "created_at",
            "updated_at",
        ]
        read_only_fields = [*READ_ONLY, "total_token_usage"]
        extra_kwargs = {
            "description": {"max_length": MAX_TEXT_CHARS},
            "greeting": {
                "max_length": MAX_TEXT_CHARS,
                "help_text": "What an empty chat says first, in Markdown. The model does not read it.",
            },
            "prompt": _PROMPT,
            "untrusted_calls": {
                "help_text": "What becomes of calls that could do harm once a turn has read what "
                "strangers wrote: a person is asked first, they are refused, or allowed."
            },
            "hide_reasoning": {
                "help_text": "Nobody is shown what the model thinks before it answers."
            },
            "model": {
                "help_text": "An alias from GET models/. `auto` or empty: the default model."
            },
        }

    @extend_schema_field(serializers.ChoiceField(choices=Right.choices))
    def get_access(self, assistant: Assistant) -> str:
        """Return what the context's principal may do. One query, unless it came with the row."""
        return access_to(assistant, self.context["principal"])

    def validate_slug(self, slug: str) -> str:
        if looks_like_id(slug):
            raise serializers.ValidationError("A slug must not look like an id.")
        return slug

    def validate_disabled_builtin_tools(self, names: list[str]) -> list[str]:
        return sorted(set(names))

    def validate_public_origins(self, origins: list[str]) -> list[str]:
        return list(dict.fromkeys(browser_origin(text) for text in origins))


class BoundToolSerializer(serializers.ModelSerializer[Tool]):
    class Meta:
        model = Tool
        fields = ["id", "name", "description", "kind"]
        read_only_fields = fields


class BindingSerializer(serializers.ModelSerializer[AssistantTool]):
    """A tool that the assistant uses. Empty `functions` means all of the tool's functions."""

    tool_id = serializers.UUIDField()
    tool = BoundToolSerializer(read_only=True)
    functions = BoundedListField(
        child=serializers.CharField(max_length=200), required=False, max_length=MAX_FUNCTIONS
    )

    class Meta:
        model = AssistantTool
        fields = ["id", "tool_id", "tool", "functions", "created_at", "updated_at"]
        read_only_fields = READ_ONLY

    def validate_functions(self, names: list[str]) -> list[str]:
        return list(dict.fromkeys(names))


class FunctionsSerializer(serializers.Serializer[Any]):
    """The part of a binding that can be changed."""

    functions = BoundedListField(
        child=serializers.CharField(max_length=200), max_length=MAX_FUNCTIONS
    )

    def validate_functions(self, names: list[str]) -> list[str]:
        return list(dict.fromkeys(names))


class ScenePromptSerializer(serializers.ModelSerializer[ScenePrompt]):
    examples = BoundedListField(
        child=serializers.CharField(max_length=MAX_TEXT_CHARS),
        required=False,
        max_length=MAX_EXAMPLES,
        help_text="Examples of messages that belong to this scene.",
    )

    class Meta:
        model = ScenePrompt
        fields = [
            "id",
            "label",
            "prompt",
            "examples",
            "temperature",
            "top_p",
            "created_at",
            "updated_at",
        ]
        read_only_fields = READ_ONLY
        extra_kwargs = {"prompt": _PROMPT}
