"""Turn what a form of a schema posts into arguments, and arguments into what the form would post.

A control is named by its place among the fields: `a.0.2` is the third field of the first, and in a
list the third item; `a.0.n` says how many items a list has. Names of the schema never become names
of controls, so they may hold anything. An optional field that is left empty is left out. What a form
cannot say this way (an optional text that is empty, say) `to_posted` tells by None: then only JSON can.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django.utils.translation import gettext as _

from amber.lib.json_text import numbers
from tools.trial_forms.schema_fields import ArgumentField, FieldKind

ROOT: Final = "a"
MAX_ITEMS: Final = 100
_COUNT: Final = "n"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(
    r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?"
)
_LEAST, _MOST = -(2**63), 2**64 - 1
"""Whole numbers beyond these no JSON of Amber holds."""

Posted = Mapping[str, str]


@dataclass(slots=True)
class PostedArguments:
    """What a form posted: `errors` say by the control's name what is wrong with it."""

    arguments: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def read_posted(whole: ArgumentField, posted: Posted) -> PostedArguments:
    """Return the arguments that were posted. They are of use only without errors."""
    read = PostedArguments()
    for name, part in _parts_of(whole, ROOT):
        value = _read(part, name, posted, read.errors)
        if value is not _LEFT_OUT:
            read.arguments[part.name] = value
    return read


def to_posted(whole: ArgumentField, arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what the form posts for these arguments; None if it cannot say them."""
    posted: dict[str, str] = {}
    _write(whole, ROOT, arguments, posted)
    read = read_posted(whole, posted)
    is_same = not read.errors and _as_json(read.arguments) == _as_json(arguments)
    return posted if is_same else None


def add_item(posted: Posted, name: str) -> dict[str, str]:
    """Return what was posted with one more item in this list."""
    count = min(count_of(posted, name) + 1, MAX_ITEMS)
    return {**posted, f"{name}.{_COUNT}": str(count)}


def remove_item(posted: Posted, name: str, place: int) -> dict[str, str]:
    """Return what was posted without this item of the list; those behind it move up."""
    moved: dict[str, str] = {}
    for control, value in posted.items():
        item, rest = _split_item(control, name)
        if item is None or item < place:
            moved[control] = value
        elif item > place:
            moved[f"{name}.{item - 1}{rest}"] = value
    moved[f"{name}.{_COUNT}"] = str(max(count_of(posted, name) - 1, 0))
    return moved


def count_of(posted: Posted, name: str) -> int:
    """Return how many items a list has."""
    given = posted.get(f"{name}.{_COUNT}", "")
    return min(int(given), MAX_ITEMS) if re.fullmatch("[0-9]{1,4}", given) else 0


def _split_item(control: str, name: str) -> tuple[int | None, str]:
    found = re.match(r"\.([0-9]{1,4})(?=\.|$)", control.removeprefix(name))
    if not control.startswith(f"{name}.") or not found:
        return None, ""
    return int(found[1]), control.removeprefix(name)[found.end() :]


class _Omission:
    pass


_LEFT_OUT: Final = _Omission()
Errors = dict[str, str]


def _parts_of(group: ArgumentField, name: str) -> list[tuple[str, ArgumentField]]:
    return [(f"{name}.{place}", part) for place, part in enumerate(group.parts)]


def _read(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    return _READERS[part.kind](part, name, posted, errors)


def _when_empty(part: ArgumentField, name: str, errors: Errors, wanted: str) -> Any:
    """Return what an empty control stands for; note what is `wanted` if it must not be empty."""
    if not part.is_required:
        return _LEFT_OUT
    if not part.is_nullable:
        errors[name] = wanted
    return None


def _read_group(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    is_wanted = part.is_required and not part.is_nullable
    if not is_wanted and not _is_filled(part, name, posted):
        return None if part.is_required else _LEFT_OUT
    values = {
        inner.name: _read(inner, place, posted, errors) for place, inner in _parts_of(part, name)
    }
    return {key: value for key, value in values.items() if value is not _LEFT_OUT}


def _is_filled(part: ArgumentField, name: str, posted: Posted) -> bool:
    if part.kind is FieldKind.GROUP:
        return any(_is_filled(inner, place, posted) for place, inner in _parts_of(part, name))
    if part.kind is FieldKind.LIST:
        return count_of(posted, name) > 0
    return bool(posted.get(name, "").strip())


def _read_list(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    count = count_of(posted, name)
    if not count and not part.is_required:
        return _LEFT_OUT
    return [_read(part.parts[0], f"{name}.{place}", posted, errors) for place in range(count)]


def _read_text(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    """Read text as it is; browsers write each end of a line as two characters."""
    text = posted.get(name, "").replace("\r\n", "\n")
    if text or (part.is_required and not part.is_nullable):
        return text
    return None if part.is_required else _LEFT_OUT


def _read_integer(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    text = posted.get(name, "").strip()
    if not text:
        return _when_empty(part, name, errors, _("Enter a whole number."))
    if not _WHOLE.fullmatch(text) or not _LEAST <= int(text) <= _MOST:
        errors[name] = _("This is not a whole number, or too large a one.")
        return None
    return int(text)


def _read_number(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    text = posted.get(name, "").strip()
    if not text:
        return _when_empty(part, name, errors, _("Enter a number."))
    if _WHOLE.fullmatch(text) and _LEAST <= int(text) <= _MOST:
        return int(text)
    if not _NUMBER.fullmatch(text) or abs(float(text)) == float("inf"):
        errors[name] = _("This is not a number, or too large a one. Write 2.5, for example.")
        return None
    return float(text)


def _read_boolean(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    text = posted.get(name, "")
    if not text:
        return _when_empty(part, name, errors, _("Choose yes or no."))
    if text not in ("true", "false"):
        errors[name] = _("Choose yes or no.")
    return text == "true"


def _read_choice(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    text = posted.get(name, "")
    if re.fullmatch("[0-9]{1,4}", text) and int(text) < len(part.choices):
        return part.choices[int(text)]
    if text or part.is_required:
        errors[name] = _("Choose one of the values.")
        return None
    return _LEFT_OUT


def _read_json(part: ArgumentField, name: str, posted: Posted, errors: Errors) -> Any:
    text = posted.get(name, "").strip()
    if not text:
        return _when_empty(part, name, errors, _("Enter a value as JSON."))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        errors[name] = _("This is not valid JSON: %(error)s.") % {"error": error}
        return None


_READERS: Final[Mapping[FieldKind, Callable[[ArgumentField, str, Posted, Errors], Any]]] = {
    FieldKind.GROUP: _read_group,
    FieldKind.LIST: _read_list,
    FieldKind.TEXT: _read_text,
    FieldKind.INTEGER: _read_integer,
    FieldKind.NUMBER: _read_number,
    FieldKind.BOOLEAN: _read_boolean,
    FieldKind.CHOICE: _read_choice,
    FieldKind.JSON: _read_json,
}


def _write(part: ArgumentField, name: str, value: Any, posted: dict[str, str]) -> None:
    """Write a value's controls as well as may be: `to_posted` reads them again to be sure."""
    if part.kind is FieldKind.GROUP and isinstance(value, Mapping):
        for place, inner in _parts_of(part, name):
            if inner.name in value:
                _write(inner, place, value[inner.name], posted)
    elif part.kind is FieldKind.LIST and isinstance(value, list):
        posted[f"{name}.{_COUNT}"] = str(len(value))
        for number, item in enumerate(value):
            _write(part.parts[0], f"{name}.{number}", item, posted)
    elif part.kind is FieldKind.CHOICE:
        same = (str(i) for i, each in enumerate(part.choices) if _as_json(each) == _as_json(value))
        posted[name] = next(same, "")
    elif part.kind is FieldKind.TEXT and isinstance(value, str):
        posted[name] = value
    elif part.kind is FieldKind.JSON or value is not None:
        posted[name] = _as_json(value)


def _as_json(value: Any) -> str:
    return numbers.write(value, option=orjson.OPT_SORT_KEYS).decode()
