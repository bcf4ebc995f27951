"""What the admin's pages of large tables have in common: the newest first, counted up to a bound.

What lies behind the bound is reached by filters. Most of these rows only their users change:
`ReadOnlyAdmin` shows them and does nothing else.
"""

from functools import cached_property
from typing import Any, ClassVar, Final

from django.core.paginator import Paginator
from django.http import HttpRequest
from unfold.admin import ModelAdmin

MAX_COUNTED_ROWS: Final = 1_000


class CappedPaginator(Paginator[Any]):
    @cached_property
    def count(self) -> int:
        """At most MAX_COUNTED_ROWS. Reads no more rows than that."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MAX_COUNTED_ROWS].count())


class PagedAdmin(ModelAdmin):
    """Ordered by what an index serves: ids grow with time."""

    ordering: ClassVar[Any] = ("-id",)
    paginator = CappedPaginator
    show_full_result_count = False


class ReadOnlyAdmin(PagedAdmin):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
