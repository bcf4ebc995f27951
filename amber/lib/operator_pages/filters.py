"""Filter lists of operators' pages by rows of which there are too many to list."""

from typing import Any

from unfold.contrib.filters.admin import AutocompleteSelectFilter


def by_name(field: str = "organization") -> tuple[str, Any]:
    """Return the filter that asks for a row by typing its name, and reads no other row."""
    return field, AutocompleteSelectFilter
