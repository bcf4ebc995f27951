"""Ask operators for a function's name and its arguments as one JSON object."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from tools.calling.arguments import parse_arguments
from tools.connections.connected import function_names
from tools.models import Tool
from tools.protocol import ArgumentsError


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
