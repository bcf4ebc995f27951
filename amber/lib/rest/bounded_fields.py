"""Check the length of a request's lists and objects before their contents, and clean names.

REST framework's own fields validate every entry first and count afterwards: half a million entries
cost a minute before they are refused. These fields require a limit.
"""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from amber.lib.names import plain_name


class BoundedListField(serializers.ListField):
    """A list with a required `max_length`."""

    def __init__(self, *, max_length: int, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        self.refuse_long(data)
        return super().to_internal_value(data)

    def refuse_long(self, data: Any) -> None:
        """Refuse a long list; for fields that use the entries before they are validated."""
        if isinstance(data, list) and len(data) > (self.max_length or 0):
            self.fail("max_length", max_length=self.max_length)


class BoundedDictField(serializers.DictField):
    default_error_messages = {"max_entries": "This object may have at most {max_entries} entries."}

    def __init__(self, *, max_entries: int, **kwargs: Any) -> None:
        self.max_entries = max_entries
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and len(data) > self.max_entries:
            self.fail("max_entries", max_entries=self.max_entries)
        return super().to_internal_value(data)


class PlainNameField(serializers.CharField):
    """A name with a required `max_length`, kept without what nobody sees (`amber.lib.names`)."""

    def __init__(self, *, max_length: int, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Clean the name first, so that one of which nothing is left is blank."""
        return super().run_validation(plain_name(data) if isinstance(data, str) else data)
