"""Give the admin's pages what they have in common: help texts, bounded counts, readable JSON.

Large tables are shown newest first and counted up to a bound; filters reach what lies behind it.
Most of these rows are changed by their users only: `ReadOnlyAdmin` shows them and does nothing
else.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from amber.lib.json_text import numbers

MAX_COUNTED_ROWS: Final = 1_000
_WRAPPED: Final = "white-space: pre-wrap; overflow-wrap: anywhere"


class CappedPaginator(Paginator[Any]):
    @cached_property
    def count(self) -> int:
        """Count up to MAX_COUNTED_ROWS, and read no more rows than that."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MAX_COUNTED_ROWS].count())


class OperatorAdmin(ModelAdmin):
    """A page whose `help_texts` explain those fields of the form whose names do not say enough."""

    help_texts: ClassVar[Mapping[str, str]] = {}

    @property
    def search_help_text(self) -> str:
        """Name the searched fields, as in "Search by id, user email"."""
        names = (name.lstrip("=").replace("__", " ") for name in self.search_fields)
        return "Search by " + ", ".join(name.replace("_", " ") for name in names)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs.setdefault("help_texts", dict(self.help_texts))
        return super().get_form(request, obj, change, **kwargs)


class PagedAdmin(OperatorAdmin):
    """A page ordered by primary key, which an index serves: ids grow with time."""

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


def readable_json(value: Mapping[str, Any]) -> SafeString:
    """Format JSON for a page: a line for each name, and for each item of a list."""
    return format_html('<pre style="{}">{}</pre>', _WRAPPED, "\n".join(_lines(value)))


def _lines(value: Mapping[str, Any]) -> Iterator[str]:
    for name, inner in value.items():
        if isinstance(inner, list) and inner:
            yield f"{name}:"
            yield from (f"    {_plain(item)}" for item in inner)
        else:
            yield f"{name}: {_plain(inner)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else numbers.write(value).decode()
