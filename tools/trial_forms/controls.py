"""Prepare a schema's fields for pages: as rows of a table, and as the controls of a form."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from amber.lib.shortening import shorten
from tools.trial_forms.posted_arguments import MAX_ITEMS, ROOT, Posted, count_of
from tools.trial_forms.schema_fields import ArgumentField, FieldKind, as_json, read_fields, rows_of

MAX_SHOWN_CHARS: Final = 200
LONG_TEXT_CHARS: Final = 200
"""A text that may be longer than this gets several lines at once."""

_TYPES: Final = {
    FieldKind.GROUP: gettext_lazy("object"),
    FieldKind.LIST: gettext_lazy("list"),
    FieldKind.TEXT: gettext_lazy("text"),
    FieldKind.INTEGER: gettext_lazy("whole number"),
    FieldKind.NUMBER: gettext_lazy("any number"),
    FieldKind.BOOLEAN: gettext_lazy("yes or no"),
    FieldKind.CHOICE: gettext_lazy("one of"),
    FieldKind.JSON: gettext_lazy("any JSON"),
}
_RULES: Final = {
    "format": gettext_lazy("format: %s"),
    "minimum": gettext_lazy("at least %s"),
    "exclusiveMinimum": gettext_lazy("more than %s"),
    "maximum": gettext_lazy("at most %s"),
    "exclusiveMaximum": gettext_lazy("less than %s"),
    "multipleOf": gettext_lazy("a multiple of %s"),
    "minLength": gettext_lazy("at least %s characters"),
    "maxLength": gettext_lazy("at most %s characters"),
    "pattern": gettext_lazy("pattern: %s"),
    "minItems": gettext_lazy("at least %s items"),
    "maxItems": gettext_lazy("at most %s items"),
    "uniqueItems": gettext_lazy("no item twice"),
    "default": gettext_lazy("default: %s"),
    "examples": gettext_lazy("for example: %s"),
}


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One line of the table of a function's arguments. `depth` is how far it lies inside others."""

    depth: int
    name: str
    type: str
    is_required: bool
    description: str
    choices: tuple[str, ...]
    rules: tuple[str, ...]


def argument_rows(parameters: Any) -> list[ArgumentRow]:
    """Return the table of a function's arguments; empty if it takes none."""
    return [
        ArgumentRow(
            depth,
            place,
            type_words(part),
            part.is_required,
            part.description,
            _shorten_all(map(as_json, _innermost(part).choices)),
            _shorten_all(rule_words(part)),
        )
        for depth, place, part in rows_of(read_fields(parameters))
    ]


def type_words(part: ArgumentField) -> str:
    """Say what kind of value it is: "list of text", "whole number or null"."""
    words = str(_TYPES[part.kind])
    if part.kind is FieldKind.LIST:
        words = _("list of %(items)s") % {"items": type_words(part.parts[0])}
    if part.is_nullable and part.kind is not FieldKind.CHOICE:
        words = _("%(type)s or null") % {"type": words}
    return words


def rule_words(part: ArgumentField) -> Iterator[str]:
    """Yield what limits the value, in words; those of a list's items follow its own."""
    for name, value in part.rules.items():
        words = str(_RULES[name])
        if name == "examples" and isinstance(value, list):
            value = value[0] if value else ""
        if "%s" not in words:
            if value is True:
                yield words
        else:
            yield words % as_json(value)
    if part.kind is FieldKind.LIST:
        yield from rule_words(part.parts[0])


def _innermost(part: ArgumentField) -> ArgumentField:
    return _innermost(part.parts[0]) if part.kind is FieldKind.LIST else part


def _shorten_all(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(shorten(text, MAX_SHOWN_CHARS) for text in texts)


@dataclass(frozen=True, slots=True)
class Control:
    """One field of the form as it is drawn, with what was entered and what is wrong with it.

    `options` are the values that can be chosen, with their labels. `parts` are the controls of a
    group, or of a list's items.
    """

    name: str
    label: str
    kind: str
    type: str
    is_required: bool
    description: str
    rules: tuple[str, ...]
    value: str = ""
    error: str = ""
    options: tuple[tuple[str, str], ...] = ()
    is_long: bool = False
    is_full: bool = False
    parts: tuple["Control", ...] = field(default=())


def controls_of(
    whole: ArgumentField, posted: Posted, errors: Mapping[str, str]
) -> tuple[Control, ...]:
    """Return the form's controls, in the order of the schema."""
    return tuple(
        _control(part, f"{ROOT}.{place}", posted, errors) for place, part in enumerate(whole.parts)
    )


def _control(
    part: ArgumentField, name: str, posted: Posted, errors: Mapping[str, str], label: str = ""
) -> Control:
    count = count_of(posted, name) if part.kind is FieldKind.LIST else 0
    if part.kind is FieldKind.LIST:
        inner = [(place, part.parts[0], str(place + 1)) for place in range(count)]
    else:
        inner = [(place, each, "") for place, each in enumerate(part.parts)]
    return Control(
        name,
        label or part.name,
        part.kind.value,
        type_words(part),
        part.is_required,
        part.description,
        _shorten_all(rule_words(part)),
        value=posted.get(name, ""),
        error=errors.get(name, ""),
        options=_options(part),
        is_long=_may_be_long(part),
        is_full=count >= MAX_ITEMS,
        parts=tuple(
            _control(each, f"{name}.{place}", posted, errors, named) for place, each, named in inner
        ),
    )


def _options(part: ArgumentField) -> tuple[tuple[str, str], ...]:
    if part.kind is FieldKind.BOOLEAN:
        return (("true", _("yes")), ("false", _("no")))
    shown = _shorten_all(map(as_json, part.choices))
    return tuple((str(place), text) for place, text in enumerate(shown))


def _may_be_long(part: ArgumentField) -> bool:
    longest = part.rules.get("maxLength", 0)
    return isinstance(longest, int) and longest > LONG_TEXT_CHARS
