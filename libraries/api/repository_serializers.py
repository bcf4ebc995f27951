"""Define the shapes of Git imports; what goes out is in `libraries.wire`."""

from typing import Any, Final

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedListField
from amber.lib.rest.wire_serializers import serializer_of
from libraries.git.globs import MAX_WILDCARDS, count_wildcards
from libraries.wire import RepositoryWire

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


RepositorySerializer = serializer_of(RepositoryWire)
