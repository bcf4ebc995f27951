"""Ask operators for what an assistant is made of, and refuse what no turn could use.

Rows of other organizations are refused, and not even offered where the assistant is known.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import FieldError, PermissionDenied
from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _l
from rest_framework.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from accounts.api.serializers import browser_origin
from assistants.models import MAX_QUESTIONS, Assistant, ScenePrompt
from assistants.slugs import looks_like_id
from providers.models import AUTO_ALIAS
from providers.registry import ListedModel, listed_models
from tools.calling.registry import builtin_names, builtin_specs
from tools.connections.connected import function_names

CHOICES_ROUTE: Final = "admin:assistants_assistant_choices"
_ENDS_OF_LINES: Final = re.compile(r"[\r\n]+")
_SPACES_AND_COMMAS: Final = re.compile(r"[\s,]+")
MAX_CHECKED_FUNCTIONS: Final = 100
"""A tool with more functions has its chosen ones named in lines of text."""

MEMBERS: Final = {"user": "memberships__organization"}
"""How rows of a relation are limited to an organization, where it is not by a column of its own."""


class LinesField(forms.CharField):
    """A list of texts, one a line; also separated by commas where these are `separators`."""

    def __init__(
        self, *, rows: int = 4, separators: re.Pattern[str] = _ENDS_OF_LINES, **kwargs: Any
    ) -> None:
        kwargs.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": rows}))
        super().__init__(required=False, **kwargs)
        self._separators = separators

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else "\n".join(value)

    def to_python(self, value: Any) -> Any:
        found = self._separators.split(super().to_python(value) or "")
        return [line.strip() for line in found if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        before: list[str] = self.to_python(self.prepare_value(initial))
        return bool(before != self.to_python(data))


class OrganizationChoice(AutocompleteSelect):
    """Offers rows of the assistant's organization as one types; of all while there is none.

    `known` are names of rows by id that need not be asked for: those that the form's row came with.
    """

    def __init__(self, *args: Any, assistant_id: UUID | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._assistant_id = assistant_id
        self.known: dict[str, str] = {}

    def optgroups(self, name: str, value: Any, attrs: Any = None) -> Any:
        chosen = [str(each) for each in value if each]
        if not chosen or not set(chosen) <= self.known.keys():
            return super().optgroups(name, value, attrs)
        options = [self.create_option(name, pk, self.known[pk], True, 0) for pk in chosen]
        if not self.is_required:
            options.insert(0, self.create_option(name, "", "", False, 0))
        return [(None, options, 0)]

    def get_url(self) -> str:
        if self._assistant_id is None:
            return str(super().get_url())
        return reverse(CHOICES_ROUTE, args=[self._assistant_id])


class OrganizationChoicesView(AutocompleteJsonView):
    """Answers what `OrganizationChoice` asks: rows that operators may see, of one organization."""

    organization_id: UUID | None = None

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        by = MEMBERS.get(self.source_field.name, "organization")
        try:
            return rows.filter(**{by: self.organization_id})
        except FieldError as error:  # a field of another form, whose rows belong to no organization
            raise PermissionDenied from error


class NamingForm(forms.ModelForm[Any]):
    """Names what its row refers to without a statement, as far as it was read with the row."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        read = self.instance._state.fields_cache
        for name, field in self.fields.items():
            widget = getattr(field.widget, "widget", field.widget)
            if isinstance(widget, OrganizationChoice) and (row := read.get(name)) is not None:
                widget.known = {str(row.pk): str(row)}


def model_choices(current: str) -> Iterator[tuple[str, str]]:
    """Yield the aliases that can be chosen, with what tells them apart. One query."""
    listed = listed_models()
    aliases = {model.alias for model in listed}
    if AUTO_ALIAS not in aliases:
        yield AUTO_ALIAS, _("auto: the default model")
    for model in listed:
        yield model.alias, _describe(model)
    if current and current not in aliases | {AUTO_ALIAS}:
        yield current, _("%(alias)s (not enabled: the default model answers)") % {"alias": current}


def _describe(model: ListedModel) -> str:
    about = [_("%(tokens)s tokens") % {"tokens": f"{model.context_tokens:,}"}]
    if model.vision:
        about.append(_("sees images"))
    name = _("auto: the default model") if model.alias == AUTO_ALIAS else model.alias
    return f"{name} ({', '.join(about)})"


def _builtin_choices() -> list[tuple[str, str]]:
    return [
        (spec.name, f"{spec.name}: {_first_sentence(spec.description)}") for spec in builtin_specs()
    ]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


class AssistantForm(NamingForm):
    """Refuses rows of another organization, and values that no turn could use."""

    model = forms.ChoiceField(
        label=_l("Model"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        error_messages={"invalid_choice": _l("No enabled model has this alias.")},
    )
    builtin_tools = forms.MultipleChoiceField(
        label=_l("Built-in tools"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_l("Offered where they make sense: a search of the library only with a library."),
    )
    suggested_questions = LinesField(
        label=_l("Suggested questions"),
        rows=3,
        help_text=_l("Offered in an empty chat, one a line."),
    )
    public_origins = LinesField(
        label=_l("Public origins"),
        rows=3,
        separators=_SPACES_AND_COMMAS,
        help_text=_l(
            "Sites it can be used from, such as https://example.com, one a line. Empty: any site."
        ),
    )

    class Meta:
        model = Assistant
        fields = "__all__"  # noqa: DJ007  # the page names its fields
        widgets = {  # Django reads it once
            "description": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "prompt": UnfoldAdminTextareaWidget(attrs={"rows": 14}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = self.instance.model or AUTO_ALIAS
        self.initial["model"] = self.initial.get("model") or AUTO_ALIAS
        _choice_field(self, "model").choices = list(model_choices(current))
        offered = set(builtin_names()) - set(self.instance.disabled_builtin_tools)
        self.initial["builtin_tools"] = sorted(offered)
        _choice_field(self, "builtin_tools").choices = _builtin_choices()

    def clean_model(self) -> str:
        return self.cleaned_data["model"] or AUTO_ALIAS

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if looks_like_id(slug):
            raise forms.ValidationError(_("A slug must not look like an id."))
        return slug

    def clean_suggested_questions(self) -> list[str]:
        questions: list[str] = self.cleaned_data["suggested_questions"]
        if len(questions) > MAX_QUESTIONS:
            raise forms.ValidationError(_("At most %(most)s questions.") % {"most": MAX_QUESTIONS})
        return questions

    def clean_public_origins(self) -> list[str]:
        """Write origins as browsers do: any other form would never match."""
        try:
            return [browser_origin(text) for text in self.cleaned_data["public_origins"]]
        except ValidationError as error:
            raise forms.ValidationError([str(said) for said in error.detail])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        library = cleaned.get("library")
        if library is not None and library.organization_id != _organization_id(self):
            self.add_error("library", _("This library belongs to another organization."))
        self._disable_builtin_tools(cleaned.get("builtin_tools", ()))
        return cleaned

    def _disable_builtin_tools(self, chosen: Sequence[str]) -> None:
        """Disable what was not chosen. Names of tools that are gone stay: they may come back."""
        known = set(builtin_names())
        gone = set(self.instance.disabled_builtin_tools) - known
        self.instance.disabled_builtin_tools = sorted(known - set(chosen) | gone)


class BindingForm(NamingForm):
    """Lets choose functions of a tool that is bound already; of a new one all are used."""

    functions = LinesField(
        rows=2,
        separators=_SPACES_AND_COMMAS,
        help_text=_l("Names of functions, one a line. Empty: all of the tool's functions."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            names = function_names(self.instance.tool)
            kept = [name for name in self.instance.functions if name not in names]
            if names and len(names) + len(kept) <= MAX_CHECKED_FUNCTIONS:
                self.fields["functions"] = forms.MultipleChoiceField(
                    choices=[(name, name) for name in [*names, *kept]],
                    required=False,
                    widget=UnfoldAdminCheckboxSelectMultipleWidget,
                    help_text=_("None checked: all of them."),
                )

    def clean_tool(self) -> Any:
        tool = self.cleaned_data["tool"]
        assistant = self.instance.assistant
        if tool.organization_id != assistant.organization_id:
            raise forms.ValidationError(_("This tool belongs to another organization."))
        return tool


class AssistantGrantForm(NamingForm):
    def clean_group(self) -> Any:
        group = self.cleaned_data["group"]
        # The assistant itself may be new: the row could not read it yet.
        assistant: Any = self.fields["assistant"]
        if group.organization_id != assistant.parent_instance.organization_id:
            raise forms.ValidationError(_("This group belongs to another organization."))
        return group


class ScenePromptForm(forms.ModelForm[ScenePrompt]):
    examples = LinesField(
        label=_l("Examples"), rows=5, help_text=_l("Questions of this kind, one a line.")
    )

    class Meta:
        model = ScenePrompt
        fields = ("label", "prompt", "examples", "temperature", "top_p")
        widgets = {  # Django reads it once
            "prompt": UnfoldAdminTextareaWidget(attrs={"rows": 6}),
        }

    def clean_examples(self) -> list[str]:
        """Keep the examples as they are if nobody changed them: one may have several lines."""
        given: list[str] = self.cleaned_data["examples"]
        field = self.fields["examples"]
        return (
            given
            if field.has_changed(self.instance.examples, "\n".join(given))
            else self.instance.examples
        )


def _choice_field(form: forms.Form | forms.ModelForm[Any], name: str) -> Any:
    return form.fields[name]


def _organization_id(form: forms.ModelForm[Assistant]) -> Any:
    """Return the organization that was chosen, or the row's if the form does not ask for one."""
    chosen: Model | None = form.cleaned_data.get("organization")
    return form.instance.organization_id if chosen is None else chosen.pk
