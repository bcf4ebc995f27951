"""Pages for the admin's large tables: rows are counted up to a bound, never all of them.

What lies behind the bound is reached by filters. Use with an `ordering` that an index serves
(`-id`: ids grow with time) and `show_full_result_count = False`.
"""

from functools import cached_property
from typing import Any, Final

from django.core.paginator import Paginator

MAX_COUNTED_ROWS: Final = 1_000


class CappedPaginator(Paginator[Any]):
    @cached_property
    def count(self) -> int:
        """At most MAX_COUNTED_ROWS. Reads no more rows than that."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MAX_COUNTED_ROWS].count())
