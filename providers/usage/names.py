"""Say what people call the groups of a report: names in place of ids.

Names are looked up among the rows that the tenant at work may see: the wall decides, and an id
without a name stays an id. A report is about what was, so that much of it may be deleted by now.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.models import ApiKey, Organization, User
from accounts.registry import assistant_names
from providers.usage.report import OPERATORS_GROUPS, SUMS

Names = Mapping[UUID, str]
SHOWN_DIGITS: Final = 8
"""The digits of an id that has no name any more."""


def _key_names(ids: Collection[UUID]) -> Names:
    return dict(ApiKey.objects.filter(pk__in=ids).values_list("pk", "name"))


def _user_names(ids: Collection[UUID]) -> Names:
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "email"))


def _organization_names(ids: Collection[UUID]) -> Names:
    return dict(Organization.objects.filter(pk__in=ids).values_list("pk", "name"))


_FINDERS: Final[Mapping[str, Callable[[Collection[UUID]], Names]]] = {
    "assistant": assistant_names,
    "key": _key_names,
    "user": _user_names,
    "organization": _organization_names,
}


def names_of(rows: Iterable[Mapping[str, Any]], group: str) -> Names:
    """Return the names of what `rows` are grouped by, by id; none for models and kinds. One query."""
    if group not in _FINDERS:
        return {}
    field = OPERATORS_GROUPS[group]
    ids = {row[field] for row in rows if row.get(field)}
    return _FINDERS[group](ids) if ids else {}


def with_names(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[str]
) -> tuple[list[str], list[list[Any]]]:
    """Return columns and cells of a table of `rows`: the id of a group, its name beside it, sums.

    One query for each group that has names.
    """
    names = {OPERATORS_GROUPS[name]: names_of(rows, name) for name in groups if name in _FINDERS}
    columns = [*(OPERATORS_GROUPS[name] for name in groups), "calls", *SUMS]
    titles: list[str] = []
    for column in columns:
        titles += [column, f"{column.removesuffix('_id')}_name"] if column in names else [column]
    table = []
    for row in rows:
        cells: list[Any] = []
        for column in columns:
            cells += (
                [row[column], names[column].get(row[column], "")]
                if column in names
                else [row[column]]
            )
        table.append(cells)
    return titles, table


def label_of(value: Any, names: Names) -> str:
    """Say in a word what a row is about; `value` is what it is grouped by."""
    if isinstance(value, UUID):
        return names.get(value) or _("deleted (%(id)s)") % {"id": str(value)[-SHOWN_DIGITS:]}
    return str(value) if value else _("none")
