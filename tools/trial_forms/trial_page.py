"""Decide what the page shows where a function is tried: its form, its table, and what is wrong.

It makes no call: `TrialPage.call` says which one to make.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from amber.lib.json_text import numbers
from tools.calling.arguments import check_arguments, parse_arguments
from tools.connections.connected import function_names
from tools.models import Tool
from tools.protocol import ArgumentsError
from tools.trial_forms.controls import ArgumentRow, Control, argument_rows, controls_of
from tools.trial_forms.posted_arguments import (
    Posted,
    add_item,
    read_posted,
    remove_item,
    to_posted,
)
from tools.trial_forms.schema_fields import ArgumentField, read_fields

FROM_FIELDS: Final = "fields"
"""What the form of fields posts as `mode`; without it the arguments are JSON."""


class RawForm(forms.Form):
    function = forms.ChoiceField(widget=UnfoldAdminSelectWidget, label=gettext_lazy("Function"))
    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        required=False,
        initial="{}",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false"}),
        help_text=gettext_lazy("A JSON object."),
    )

    def __init__(self, tool: Tool, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(name, name) for name in function_names(tool)]
        self.fields["function"].choices = choices  # type: ignore[attr-defined]

    def clean_arguments(self) -> dict[str, Any]:
        try:
            return parse_arguments(self.cleaned_data["arguments"])
        except ArgumentsError as error:
            raise forms.ValidationError(str(error)) from error


@dataclass(slots=True)
class TrialPage:
    """What the page shows. `call` is the function's name with its arguments, if it is to be called.

    `is_raw`: the last arguments were JSON; `cannot_show`: the form could not say them.
    """

    functions: Sequence[str]
    chosen: Mapping[str, Any]
    raw: RawForm
    rows: Sequence[ArgumentRow] = ()
    controls: Sequence[Control] = ()
    refusals: list[str] = field(default_factory=list)
    call: tuple[str, dict[str, Any]] | None = None
    is_raw: bool = False
    cannot_show: bool = False


def open_page(tool: Tool, name: str) -> TrialPage:
    """Return the page with the empty form of this function, else of the first."""
    chosen, whole = _choose(tool, name)
    raw = RawForm(tool, initial={"function": chosen.get("name", ""), "arguments": "{}"})
    return _page(tool, chosen, raw, controls=controls_of(whole, {}, {}))


def read_page(tool: Tool, posted: Posted) -> TrialPage:
    """Return the page for what was posted: by the form's fields, or as JSON."""
    if posted.get("mode") == FROM_FIELDS:
        return _read_fields(tool, posted)
    chosen, whole = _choose(tool, posted.get("function", ""))
    raw = RawForm(tool, posted)
    if not raw.is_valid():
        return _page(tool, chosen, raw, controls=controls_of(whole, {}, {}), is_raw=True)
    arguments = raw.cleaned_data["arguments"]
    shown = to_posted(whole, arguments)
    return _page(
        tool,
        chosen,
        raw,
        controls=controls_of(whole, shown or {}, {}),
        call=(raw.cleaned_data["function"], arguments),
        is_raw=True,
        cannot_show=shown is None,
    )


def _read_fields(tool: Tool, posted: Posted) -> TrialPage:
    chosen, whole = _choose(tool, posted.get("function", ""))
    name = chosen.get("name", "")
    if changed := _change_list(posted):
        raw = RawForm(tool, initial={"function": name, "arguments": "{}"})
        return _page(tool, chosen, raw, controls=controls_of(whole, changed, {}))
    read = read_posted(whole, posted)
    text = numbers.write(read.arguments, option=orjson.OPT_INDENT_2).decode()
    page = _page(
        tool,
        chosen,
        RawForm(tool, initial={"function": name, "arguments": text}),
        controls=controls_of(whole, posted, read.errors),
    )
    if read.errors:
        page.refusals.append(_("Some values are missing or wrong. Nothing was called."))
    elif misfit := _find_misfit(read.arguments, chosen):
        page.refusals.append(misfit)
    else:
        page.call = (name, read.arguments)
    return page


def _change_list(posted: Posted) -> dict[str, str] | None:
    """Return what was posted with an item more or less, if that is what a button asked for."""
    if added := posted.get("add"):
        return add_item(posted, added)
    name, _dot, place = posted.get("remove", "").rpartition(".")
    return remove_item(posted, name, int(place)) if re.fullmatch("[0-9]{1,4}", place) else None


def _find_misfit(arguments: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Say what the schema refuses, which the form's fields alone do not tell; empty if nothing."""
    try:
        check_arguments(arguments, _parameters_of(chosen))
    except ArgumentsError as error:
        return str(error)
    return ""


def _choose(tool: Tool, name: str) -> tuple[Mapping[str, Any], ArgumentField]:
    """Return the function of this name, else the first, and its fields; {} if there is none."""
    functions = tool.data.get("functions", ())
    first: Mapping[str, Any] = functions[0] if functions else {}
    chosen = next((each for each in functions if each["name"] == name), first)
    return chosen, read_fields(_parameters_of(chosen))


def _parameters_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    found = function.get("parameters")
    return found if isinstance(found, Mapping) else {}


def _page(tool: Tool, chosen: Mapping[str, Any], raw: RawForm, **shown: Any) -> TrialPage:
    names = [str(each["name"]) for each in tool.data.get("functions", ())]
    return TrialPage(names, chosen, raw, argument_rows(_parameters_of(chosen)), **shown)
