"""Give the admin's pages what they have in common: help texts, bounded counts, readable JSON.

Large tables are shown newest first and counted up to a bound; filters reach what lies behind it.
Most of these rows are changed by their users only: `ReadOnlyAdmin` shows them and does nothing
else. What operators open and change is told to whoever watches (`watch_operators`): the audit log,
which this package does not know.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from amber.lib.json_text import numbers

MAX_COUNTED_ROWS: Final = 1_000
_WRAPPED: Final = "white-space: pre-wrap; overflow-wrap: anywhere"


OperatorAct = Literal["read", "added", "changed", "deleted"]
Watcher = Callable[[HttpRequest, OperatorAct, Model, list[str]], None]
"""Takes the request, what was done, the row, and the fields and inner rows that were changed."""

_watchers: list[Watcher] = []


def watch_operators(watcher: Watcher) -> None:
    """Tell `watcher` of each row that an operator opens, adds, changes or deletes by a form.

    It is called last in the transaction of a change.
    """
    _watchers.append(watcher)


def _tell(request: HttpRequest, act: OperatorAct, rows: Iterable[Model], message: Any = ()) -> None:
    fields = [name for change in message for name in _fields_of(change)]
    for row in rows:
        for watcher in _watchers:
            watcher(request, act, row, fields)


def _fields_of(change: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names in an entry of Django's log; an inner row's fields follow its own name."""
    for said in change.values():
        inner = [said["name"]] if "name" in said else []
        yield from [": ".join([*inner, field]) for field in said.get("fields", ())] or inner


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

    def render_change_form(
        self, request: HttpRequest, *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        shown: HttpResponse = super().render_change_form(request, *args, obj=obj, **kwargs)
        if obj is not None:
            _tell(request, "read", [obj])
        return shown

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        entry = super().log_addition(request, obj, message)
        _tell(request, "added", [obj], message)
        return entry

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        entry = super().log_change(request, obj, message)
        _tell(request, "changed", [obj], message)
        return entry

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        gone = copy(obj)  # Django takes the id off the one that it deletes
        super().delete_model(request, obj)
        _tell(request, "deleted", [gone])

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        # The logs of organizations are locked one by one: in the order that all others keep to.
        gone = sorted(queryset, key=lambda row: getattr(row, "organization_id", row.pk))
        with transaction.atomic():
            super().delete_queryset(request, queryset)
            _tell(request, "deleted", gone)


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
