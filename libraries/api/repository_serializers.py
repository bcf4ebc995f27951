"""Define the shapes of Git imports; nothing here writes rows."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from libraries.git.globs import MAX_WILDCARDS, count_wildcards
from libraries.models import DocumentStatus, Repository
from libraries.wire import repository_wire

MAX_PATTERNS: Final = 100
MAX_PATTERN_CHARS: Final = 200


class PatternField(serializers.CharField):
    """A pattern of paths, as `libraries.git.globs` reads them."""

    def to_internal_value(self, data: Any) -> str:
        pattern = str(super().to_internal_value(data))
        if count_wildcards(pattern) > MAX_WILDCARDS:
            raise serializers.ValidationError(
                f"A pattern may have at most {MAX_WILDCARDS} wildcards (`*`, `**` and `?`)."
            )
        return pattern


class RepositoryInput(serializers.Serializer[Any]):
    git_url = serializers.CharField(max_length=2_000, help_text="Must begin with https://.")
    ref = serializers.RegexField(
        r"\A(?!-)[^\s~^:?*\[\\\x00-\x1f\x7f]*\Z",
        max_length=255,
        required=False,
        allow_blank=True,
        help_text="A branch, a tag or a commit; without it the default branch.",
    )
    token = serializers.CharField(
        max_length=2_000,
        required=False,
        allow_blank=True,
        write_only=True,
        help_text="An access token that may read the repository, or `name:token`. An empty one "
        "deletes the stored token.",
    )
    include = BoundedListField(
        child=PatternField(max_length=MAX_PATTERN_CHARS),
        max_length=MAX_PATTERNS,
        required=False,
        help_text="Patterns of paths, as in .gitignore. If empty, every readable file is imported.",
    )
    exclude = BoundedListField(
        child=PatternField(max_length=MAX_PATTERN_CHARS),
        max_length=MAX_PATTERNS,
        required=False,
    )


class RepositoryProgress(serializers.Serializer[Any]):
    step = serializers.CharField(
        required=False,
        help_text="`fetching`, `reading` or `done`; absent before the import begins.",
    )
    new = serializers.IntegerField(required=False)
    changed = serializers.IntegerField(required=False)
    unchanged = serializers.IntegerField(required=False)
    removed = serializers.IntegerField(required=False)
    skipped = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="How many files were left out, by reason.",
    )
    refused = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="Some of the refused files, each with the reason in words.",
    )


class RepositorySerializer(serializers.Serializer[Repository]):
    id = serializers.UUIDField()
    library_id = serializers.UUIDField()
    git_url = serializers.CharField()
    ref = serializers.CharField()
    commit = serializers.CharField(help_text="The last imported commit; empty before.")
    include = serializers.ListField(child=serializers.CharField())
    exclude = serializers.ListField(child=serializers.CharField())
    has_token = serializers.BooleanField()
    status = serializers.ChoiceField(DocumentStatus.choices)
    attempt = serializers.IntegerField()
    error = serializers.CharField(help_text="Why it failed, in words.")
    progress = RepositoryProgress()
    user_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: Repository) -> dict[str, Any]:
        return repository_wire(instance)
