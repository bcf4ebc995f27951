"""Give the admin's pages what they have in common: columns that show names, help texts, bounded
counts.

Every field's name in a list, and in a form where it is read only, becomes a column by the field's
type (`columns`): no page shows another row's id. The row's own id stands small above its form.
Large tables are shown newest first and counted up to a bound; filters reach what lies behind it.
Most of these rows are changed by their users only: `ReadOnlyAdmin` shows them and does nothing
else. What operators open and change is told to whoever watches (`watch_operators`): the audit log,
which this package does not know.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import DecimalField, Model
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin, StackedInline, TabularInline
from unfold.views import ChangeList

from amber.lib.operator_pages.autocompletes import KnownAutocomplete, with_known_names
from amber.lib.operator_pages.cells import write_person
from amber.lib.operator_pages.columns import (
    Column,
    Reference,
    Style,
    column_of,
    look_up_names,
    wrapped_column,
)
from amber.lib.operator_pages.searches import search_rows

MAX_COUNTED_ROWS: Final = 1_000


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


class NamingChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of the page, and the names of those that they mention by a plain id."""
        super().get_results(request)
        look_up_names(self.result_list, self.model_admin.references)


class _Columns:
    """Turns names of fields into columns, in lists and wherever a form is read only."""

    references: ClassVar[Mapping[str, Reference]] = {}
    """Which columns hold plain ids, and of what."""
    shows_seconds: ClassVar[bool] = False
    model: Any

    @cached_property
    def _made_columns(self) -> dict[tuple[Any, Style], Any]:
        return {}

    def column(self, name: Any, style: Style) -> Any:
        """Return the column of a field, or of a method of this page; the same one each time."""
        key = name, style
        if key not in self._made_columns:
            self._made_columns[key] = self._make_column(name, style)
        return self._made_columns[key]

    def _make_column(self, name: Any, style: Style) -> Column | str:
        if isinstance(name, str) and name in self._fields:
            return column_of(self.model, name, self.references, style)
        if isinstance(name, str) and name != "action_checkbox" and hasattr(self, name):
            return wrapped_column(self, name, style)
        return name  # type: ignore[no-any-return]

    @cached_property
    def _fields(self) -> set[str]:
        meta = self.model._meta
        known = [*meta.concrete_fields, *meta.many_to_many]
        return {each.name for each in known} | {each.attname for each in known}

    def columns_of_form(self, names: Iterable[Any]) -> list[Any]:
        """Return what a form shows of fields that it does not change."""
        style = Style(self.shows_seconds, clips=False)
        return [self.column(name, style) for name in names]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.columns_of_form(super().get_readonly_fields(request, obj))  # type: ignore[misc]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Name columns where the form is read only. A page that may not be changed is all of it."""
        sets = super().get_fieldsets(request, obj)  # type: ignore[misc]
        readonly = self.get_readonly_fields(request, obj)
        fixed = {getattr(each, "__name__", each): each for each in readonly}
        is_fixed = obj is not None and not self.has_change_permission(request, obj)  # type: ignore[attr-defined]

        def place(name: Any) -> Any:
            if isinstance(name, list | tuple):
                return tuple(map(place, name))
            return self.columns_of_form([name])[0] if is_fixed else fixed.get(name, name)

        return [(title, {**each, "fields": [*map(place, each["fields"])]}) for title, each in sets]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Ask for fractions without the zeros that the column's places would end in."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if isinstance(db_field, DecimalField) and field is not None:
            field.prepare_value = _without_zeros
        return field

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs.setdefault("widget", KnownAutocomplete(db_field, self.admin_site))  # type: ignore[attr-defined]
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]


def _without_zeros(value: Any) -> Any:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


class _Inline(_Columns):
    """Inner rows, with the rows that they name in the same statement (`named_rows`)."""

    named_rows: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)  # type: ignore[misc]
        return rows.select_related(*self.named_rows) if self.named_rows else rows

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs.setdefault("form", with_known_names(self.form))  # type: ignore[attr-defined]
        return super().get_formset(request, obj, **kwargs)  # type: ignore[misc]


class OperatorTabularInline(_Inline, TabularInline):
    pass


class OperatorStackedInline(_Inline, StackedInline):
    pass


class OperatorAdmin(_Columns, ModelAdmin):
    """A page whose `help_texts` explain those fields of the form whose names do not say enough."""

    help_texts: ClassVar[Mapping[str, Any]] = {}
    unread: ClassVar[tuple[str, ...]] = ()
    """Columns that the page does not read: what people wrote, and what is large."""
    styles: ClassVar[tuple[str, ...]] = ()
    scripts: ClassVar[tuple[str, ...]] = ()
    """What this page needs besides the style sheets and scripts of every page."""
    list_per_page = 50
    change_form_outer_before_template = "admin/amber/row_id.html"

    @property
    def media(self) -> Media:
        usual: Media = super().media
        return usual + Media(css={"all": self.styles}, js=self.scripts)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Read the rows that a row refers to with it, for its own page too."""
        rows = super().get_queryset(request).defer(*self.unread)
        named = self.list_select_related
        return rows.select_related(*named) if isinstance(named, tuple) else rows

    def find_row(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row of a page's address. Raises Http404, also for what is no id at all."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return NamingChangeList

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return columns. The first one leads to the row itself, so its names lead nowhere."""
        first, *others = super().get_list_display(request)
        style = Style(self.shows_seconds)
        links = self.list_display_links is not None
        plain = Style(self.shows_seconds, is_link=not links)
        return [self.column(first, plain), *(self.column(name, style) for name in others)]

    @property
    def list_filter_submit(self) -> bool:
        """Whether the filters have a button: a name that is typed wants one, links do not."""
        return any(isinstance(each, tuple) for each in self.list_filter)

    @property
    def search_help_text(self) -> str:
        """Name the searched fields, as in "Search by id, user email"."""
        paths = (name.lstrip("=").split("__") for name in self.search_fields)
        named = (" ".join(gettext(each.replace("_", " ")) for each in path) for path in paths)
        listed = ", ".join(named)
        return gettext("Search by %(names)s") % {"names": listed}

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs.setdefault("help_texts", dict(self.help_texts))
        if obj is not None and self.get_autocomplete_fields(request):
            kwargs.setdefault("form", with_known_names(self.form))
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
    narrowed_ordering: ClassVar[Any] = ("-created_at", "-id")
    """The order of the rows of one organization or person: their own indexes are in it. By primary key
    Postgres would read everybody's newest rows until it has enough of theirs."""

    def get_ordering(self, request: HttpRequest) -> Any:
        is_narrowed = "q" in request.GET or any("__id__" in name for name in request.GET)
        return self.narrowed_ordering if is_narrowed else super().get_ordering(request)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        if not search_term.strip():
            return queryset, False
        return search_rows(queryset, self.get_search_fields(request), search_term), False

    @admin.display(description=_("owner"))
    def belongs_to(self, row: Any) -> SafeString:
        """Name the user, or say that it is a guest's, and the organization."""
        return write_person(row.user, getattr(row, "guest_id", None), row.organization)


class ReadOnlyAdmin(PagedAdmin):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
