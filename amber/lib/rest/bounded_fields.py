"""Lists and objects of a request whose length is looked at before what is in them.

REST framework's own fields validate every entry first and count afterwards: half a million entries cost
a minute before they are refused. Refuses to be without a limit.
"""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers


class BoundedListField(serializers.ListField):
    """`max_length` must be given."""

    def __init__(self, *, max_length: int, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        self.refuse_long(data)
        return super().to_internal_value(data)

    def refuse_long(self, data: Any) -> None:
        """For fields that do something with the entries before they are validated."""
        if isinstance(data, list) and len(data) > (self.max_length or 0):
            self.fail("max_length", max_length=self.max_length)


class BoundedDictField(serializers.DictField):
    default_error_messages = {"max_entries": "At most {max_entries} entries."}

    def __init__(self, *, max_entries: int, **kwargs: Any) -> None:
        self.max_entries = max_entries
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and len(data) > self.max_entries:
            self.fail("max_entries", max_entries=self.max_entries)
        return super().to_internal_value(data)
