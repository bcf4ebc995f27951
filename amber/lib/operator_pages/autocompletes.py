"""Let operators choose rows by typing a part of a name, where a list would be too long.

A form of many inner rows reads no name twice: a row that is there already knows what it refers to.
"""

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin.widgets import AutocompleteSelect
from django.forms import ModelForm
from unfold.contrib.filters.admin import AutocompleteSelectFilter

BY_ORGANIZATION: Final = ("organization", AutocompleteSelectFilter)
"""The filter of a list by typing an organization's name, which reads no other row."""


class KnownAutocomplete(AutocompleteSelect):
    """Shows the chosen row's name without a statement where the form knows it (`known`)."""

    known: dict[str, str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = {}

    def optgroups(self, name: str, value: Any, attrs: Any = None) -> Any:
        chosen = [str(each) for each in value if each]
        if not chosen or any(each not in self.known for each in chosen):
            return super().optgroups(name, value, attrs)
        groups: Any = (None, [], 0)
        if not self.is_required:
            groups[1].append(self.create_option(name, "", "", False, 0))
        for each in chosen:
            groups[1].append(self.create_option(name, each, self.known[each], True, 0))
        return [groups]


def with_known_names(form: type[ModelForm[Any]]) -> type[ModelForm[Any]]:
    """Return the form with what its row refers to, as far as that was read with it."""

    class KnownNames(form):  # type: ignore[valid-type,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            read = self.instance._state.fields_cache
            for name, widget in _autocompletes(self.fields):
                if (row := read.get(name)) is not None:
                    widget.known = {str(row.pk): str(row)}

    return KnownNames


def _autocompletes(fields: dict[str, Any]) -> Iterable[tuple[str, KnownAutocomplete]]:
    for name, field in fields.items():
        widget = getattr(field.widget, "widget", field.widget)
        if isinstance(widget, KnownAutocomplete):
            yield name, widget
