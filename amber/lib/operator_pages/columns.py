"""Make of a field's name what a list, or a read-only form, shows of it: by the field's type.

A foreign key is the other row's name, a plain id of another row is that row's name too, a state is a
badge, a time has the seconds that its page wants. No column shows an id.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.apps import apps
from django.db import models
from django.utils.translation import gettext, gettext_lazy, override

from amber.lib.operator_pages.cells import (
    NOTHING,
    write_id,
    write_moment,
    write_name,
    write_state,
    write_value,
)
from amber.lib.operator_pages.states import STATES

Column: TypeAlias = Callable[[Any], Any]
Reference: TypeAlias = str | Callable[[Any], str]
"""Whose id a plain column holds: a model's label, or a function that returns it for a row ("": no
row's)."""

HEADINGS: Final = {
    "http_status": gettext_lazy("HTTP status"),
    "is_staff": gettext_lazy("operator"),
    "is_test": gettext_lazy("test"),
    "mime_type": gettext_lazy("type"),
    "total_token_usage": gettext_lazy("tokens used"),
    "user": gettext_lazy("user"),
}
"""Of fields whose names do not make good headings."""
MAX_LOOKUPS: Final = 5
"""Kinds of rows that a page reads names of, for one column: a log's targets may be of twenty."""
_NAMES: Final = "_names_of_references"
_VALUES: Final = "_values_of_columns"


@dataclass(frozen=True)
class Style:
    """What a page wants of its columns."""

    shows_seconds: bool = False
    is_link: bool = True
    """Whether names lead to their rows: not in a cell that leads to its own row."""
    clips: bool = True
    """Whether long texts are cut: in lists, not in forms."""


def column_of(model: Any, name: str, references: Mapping[str, Reference], style: Style) -> Column:
    """Return a column for the model's field `name`, with its heading and order."""
    field = model._meta.get_field(name) if name != "pk" else model._meta.pk
    write = _writer_of(field, references, style)

    def column(row: Any) -> Any:
        return write(row)

    column.__name__ = name
    column.short_description = _heading(field)  # type: ignore[attr-defined]
    if not field.is_relation and name not in references:
        column.admin_order_field = name  # type: ignore[attr-defined]
    if isinstance(field, models.BooleanField):
        column.boolean = True  # type: ignore[attr-defined]
    return column


def _heading(field: Any) -> Any:
    if field.name in HEADINGS:
        return HEADINGS[field.name]
    with override(None):  # a column is kept for all: its heading is not in the first one's language
        name = str(field.verbose_name)
    return gettext_lazy(name.removesuffix(" id"))


def wrapped_column(page: Any, name: str, style: Style) -> Column:
    """Return a column for what the page's own method `name` returns.

    It is called once for a row: forms ask for what they show several times, and it may be a query.
    """
    own = getattr(page, name)

    def column(row: Any) -> Any:
        values = row.__dict__.setdefault(_VALUES, {})
        if name not in values:
            values[name] = own(row)
        value = values[name]
        if column_is_boolean:
            return value
        return write_value(value, seconds=style.shows_seconds, clips=style.clips)

    column_is_boolean = getattr(own, "boolean", False)
    column.__name__ = name
    for attribute in ("short_description", "admin_order_field", "boolean", "empty_value_display"):
        if hasattr(own, attribute):
            setattr(column, attribute, getattr(own, attribute))
    if not hasattr(own, "short_description"):
        column.short_description = name.replace("_", " ")  # type: ignore[attr-defined]
    return column


def _writer_of(field: Any, references: Mapping[str, Reference], style: Style) -> Column:
    name = field.attname
    if field.name in references:
        return lambda row: _write_reference(row, field.name, references, style)
    if isinstance(field, models.ManyToManyField):
        return lambda row: write_value([*getattr(row, field.name).all()])
    if field.is_relation:
        return lambda row: write_name(getattr(row, field.name), is_link=style.is_link)
    if isinstance(field, models.BooleanField):
        return lambda row: getattr(row, name)
    if field.primary_key or isinstance(field, models.UUIDField):
        return lambda row: write_id(getattr(row, name))
    if field.choices:
        return _writer_of_choices(field, style)
    write = _writer_of_type(field, style)
    return lambda row: write(getattr(row, name))


def _writer_of_choices(field: Any, style: Style) -> Column:
    labels = dict(field.flatchoices)
    if labels.keys() <= STATES.keys():
        return lambda row: write_state(getattr(row, field.attname))

    def write(row: Any) -> Any:
        value = getattr(row, field.attname)
        label = gettext(str(labels.get(value, value))) if value else ""
        return write_value(label, clips=style.clips)

    return write


def _writer_of_type(field: Any, style: Style) -> Column:
    if isinstance(field, models.DateTimeField):
        return lambda value: write_moment(value, seconds=style.shows_seconds)
    return lambda value: write_value(value, clips=style.clips)


# -- Plain ids of other rows ---------------------------------------------------------------------


def look_up_names(rows: Iterable[Any], references: Mapping[str, Reference]) -> None:
    """Read the rows that these rows' plain ids name, and keep them on these. A statement for each
    kind of row in each column, at most MAX_LOOKUPS for one column."""
    rows = list(rows)
    for name, reference in references.items():
        wanted = [
            (row, label, getattr(row, name)) for row in rows if (label := _label(reference, row))
        ]
        kinds = Counter(label for _, label, identifier in wanted if identifier)
        for label, _ in kinds.most_common(MAX_LOOKUPS):
            ids = {str(identifier) for _, kind, identifier in wanted if kind == label}
            found = _read(label, ids)
            for row, kind, identifier in wanted:
                if kind == label:
                    row.__dict__.setdefault(_NAMES, {})[name] = found.get(str(identifier))


def _label(reference: Reference, row: Any) -> str:
    return reference if isinstance(reference, str) else reference(row)


def _read(label: str, ids: Iterable[str]) -> dict[str, Any]:
    """Read rows by id, without their long texts, which no name needs."""
    model: Any = apps.get_model(label)
    valid = [each for each in ids if _is_uuid(each)]
    long = (models.TextField, models.JSONField)
    texts = [
        each.name
        for each in model._meta.concrete_fields
        if isinstance(each, long) and not each.is_relation
    ]
    found = model._base_manager.filter(pk__in=valid).defer(*texts) if valid else ()
    return {str(row.pk): row for row in found}


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def reference_of(row: Any, name: str, references: Mapping[str, Reference]) -> Any:
    """Return the row that a plain id names, None if it is gone. A query unless it was looked up."""
    if name not in row.__dict__.get(_NAMES, {}):
        look_up_names([row], {name: references[name]})
    return row.__dict__.get(_NAMES, {}).get(name)


def _write_reference(row: Any, name: str, references: Mapping[str, Reference], style: Style) -> Any:
    identifier = getattr(row, name)
    if not identifier:
        return NOTHING
    found = reference_of(row, name, references)
    if found is not None:
        return write_name(found, is_link=style.is_link)
    return gettext_lazy("deleted") if style.clips else write_id(identifier)
