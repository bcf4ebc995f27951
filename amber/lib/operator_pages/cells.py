"""Write values for operators' pages: names that lead somewhere, states, times, amounts, ids.

Each function returns what a cell of a list, or a field of a form, shows. None and "" are a dash.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from amber.lib.json_text import numbers
from amber.lib.operator_pages.states import Tone, state_of

NOTHING: Final = format_html('<span class="amber-nothing">{}</span>', "–")
_WRAPPED: Final = "white-space: pre-wrap; overflow-wrap: anywhere"
_TONES: Final = {
    Tone.GOOD: "bg-green-100 text-green-700 dark:bg-green-500/20 dark:text-green-400",
    Tone.UNDER_WAY: "bg-blue-100 text-blue-700 dark:bg-blue-500/20 dark:text-blue-400",
    Tone.LOOK: "bg-orange-100 text-orange-700 dark:bg-orange-500/20 dark:text-orange-400",
    Tone.BAD: "bg-red-100 text-red-700 dark:bg-red-500/20 dark:text-red-400",
    Tone.QUIET: "bg-base-500/8 text-base-700 dark:bg-base-500/20 dark:text-base-200",
}
"""Unfold's classes (`unfold/helpers/label.html`), written here: a template for each badge of a list
would be a third of its time."""


def write_state(value: str | None, *, otherwise: Tone = Tone.QUIET) -> SafeString:
    """Write a badge: its colour and word are those of `states.STATES`."""
    if not value:
        return NOTHING
    state = state_of(value, otherwise=otherwise)
    return format_html('<span class="amber-state {}">{}</span>', _TONES[state.tone], state.label)


def write_name(row: Model | None, *, is_link: bool = True) -> SafeString:
    """Write what people call the row, as a link to its page if it has one."""
    if row is None:
        return NOTHING
    name = str(row)
    address = page_of(row) if is_link else ""
    if not address:
        return write_text(name)
    return format_html(
        '<a class="amber-name amber-clip" href="{}" title="{}">{}</a>', address, name, name
    )


def write_names(name: object, *others: object) -> SafeString:
    """Write a name, and under it in small type whatever else says which one it is."""
    small = " · ".join(str(each) for each in others if each)
    if not small:
        return format_html("{}", name)
    return format_html(
        '<span class="amber-two">{}<small title="{}">{}</small></span>', name, small, small
    )


def write_person(user: Model | None, guest_id: str | None, note: object = "") -> SafeString:
    """Write who a row is of: a user, or a guest, who has no name but the end of an id."""
    if user is None or guest_id:
        return write_names(_("Guest …%s") % guest_id[-6:] if guest_id else _("Nobody"), note)
    return write_names(write_name(user), note)


def page_of(row: Model) -> str:
    """Return the address of a row's page; empty if its model has none."""
    before, after = _page_of_model(type(row)) or ("", "")
    return f"{before}{row.pk}{after}" if before else ""


@cache
def _page_of_model(model: type[Model]) -> tuple[str, str] | None:
    meta = model._meta
    try:
        address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=["*"])
    except NoReverseMatch:
        return None
    before, _star, after = address.partition("*")
    return before, after


def write_text(text: str) -> SafeString:
    """Write a line that ends in an ellipsis where it does not fit, and is whole when pointed at."""
    if not text:
        return NOTHING
    return format_html('<span class="amber-clip" title="{}">{}</span>', text, text)


def write_moment(moment: datetime | None, *, seconds: bool = False) -> SafeString:
    """Write a time that sorts by eye; `seconds` where they matter."""
    if moment is None:
        return NOTHING
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
        local.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"),
    )


def write_number(number: float | Decimal | None, places: int | None = None) -> str:
    """Write a number with the language's separators, rounded to `places`, or with as many as it has."""
    if number is None:
        return NOTHING
    if isinstance(number, Decimal) and places is None:
        number = number.normalize() + 0
        places = max(0, -int(number.as_tuple().exponent))
    written = (
        number if places is None else f"{number:.{places}f}"
    )  # what Django would cut off is rounded
    return str(formats.number_format(written, places, force_grouping=True))


def write_money(amount: Decimal | None) -> str:
    """Write an amount with its currency: two places, below ten cents two digits that count."""
    if amount is None:
        return NOTHING
    is_small = amount and abs(amount) < Decimal("0.1")
    places = min(8, 1 - amount.adjusted()) if is_small else 2
    return f"{write_number(amount, places)}\u00a0{settings.AMBER_CURRENCY}"


def write_seconds(seconds: float | None) -> str:
    """Write how long something took: two digits that count, minutes from 100 seconds on."""
    if seconds is None:
        return NOTHING
    if seconds >= 100:
        minutes, rest = divmod(round(seconds), 60)
        return _("%(minutes)s min %(seconds)02d s") % {
            "minutes": write_number(minutes),
            "seconds": rest,
        }
    return _("%(seconds)s s") % {"seconds": write_number(seconds, 2 if seconds < 10 else 1)}


def write_milliseconds(milliseconds: int | None) -> str:
    return write_seconds(None if milliseconds is None else milliseconds / 1_000)


def write_id(identifier: object) -> SafeString:
    """Write an id in small type, with a button that copies it (amber/desk.js)."""
    if not identifier:
        return NOTHING
    return format_html(
        '<span class="amber-id"><code>{}</code><button type="button" class="amber-copy" '
        'data-copy="{}" aria-label="{}"><span class="material-symbols-outlined" '
        'aria-hidden="true">content_copy</span></button></span>',
        identifier,
        identifier,
        _("Copy the ID"),
    )


def write_value(value: Any, *, seconds: bool = False, clips: bool = True) -> Any:
    """Write a value by what it is; `clips` says whether a long text is cut."""
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, bool | SafeString):
        return value
    if isinstance(value, int | float | Decimal):
        return write_number(value)
    if isinstance(value, datetime):
        return write_moment(value, seconds=seconds)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Model):
        return write_name(value)
    if isinstance(value, Mapping):
        return readable_json(value)
    text = ", ".join(map(_plain, value)) if isinstance(value, list | tuple) else str(value)
    return write_text(text) if clips else text


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
