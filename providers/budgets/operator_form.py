"""Ask operators whose a new budget is, by names: a user's, a key's, an assistant's, a guest's id.

What is stored is the row's `subject`, the id of whatever its scope names.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.models import Membership
from amber.lib.operator_pages.autocompletes import KnownAutocomplete
from providers.budgets import services
from providers.models import Budget, BudgetScope

_REFERENCES: Final[Mapping[str, tuple[str, str]]] = {
    "user": ("accounts.ApiKey", "user"),
    "key": ("chats.Chat", "api_key"),
    "assistant": ("chats.Chat", "assistant"),
}
"""For each field a foreign key to the same model: an autocomplete asks by way of one, and a budget
has none, as its subject may be of several kinds. They are looked up by name because those apps lie
above this one."""
FIELDS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    BudgetScope.USER: ("user",),
    BudgetScope.KEY: ("key",),
    BudgetScope.ASSISTANT: ("assistant",),
    BudgetScope.GUEST: ("guest_id", "assistant"),
}
"""What names the subject of a budget with this scope, and what narrows it."""


class BudgetForm(forms.ModelForm[Budget]):
    """Asks for the subject by name. The form of a budget that is there has only its limit."""

    class Meta:
        model = Budget
        fields: ClassVar[list[str]] = [
            "organization",
            "scope",
            "period",
            "unit",
            "limit",
            "by_operator",
        ]

    user: Any = forms.ModelChoiceField(
        None,
        required=False,
        label=_("User"),
        help_text=_("Empty: each user of the organization separately."),
    )
    key: Any = forms.ModelChoiceField(
        None,
        required=False,
        label=_("API key"),
        help_text=_("Empty: each key of the organization separately."),
    )
    assistant: Any = forms.ModelChoiceField(
        None,
        required=False,
        label=_("Assistant"),
        help_text=_("Empty: each assistant separately; of guests, those of all assistants."),
    )
    guest_id = forms.CharField(
        max_length=200,
        required=False,
        label=_("Guest"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_("A guest's id, as the REST API tells it. Empty: each guest separately."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, key) in _REFERENCES.items():
            if name in self.fields:
                reference: Any = apps.get_model(label)._meta.get_field(key)
                field: Any = self.fields[name]
                field.widget = KnownAutocomplete(reference, admin.site)
                field.queryset = reference.remote_field.model.objects.all()

    def _get_validation_exclusions(self) -> set[str]:
        """Compare a new budget with others by its subject, which is in no field of the form."""
        left_out: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # undocumented
        return left_out - {"subject", "assistant_id"} if "scope" in self.fields else left_out

    def clean(self) -> dict[str, Any]:
        """Make a subject of what was chosen, and refuse what belongs to another organization."""
        given = super().clean() or {}
        organization, scope = given.get("organization"), given.get("scope")
        if organization is None or scope is None:
            return given
        asked = FIELDS_OF.get(scope, ())
        for name in asked:
            row = given.get(name)
            if isinstance(row, Model) and not _belongs(row, organization):
                self.add_error(name, gettext("This one belongs to another organization."))
        chosen = given.get(asked[0]) if asked else None
        subject = str(chosen.pk if isinstance(chosen, Model) else chosen or "")
        self.instance.subject = services.subject_of(scope, subject)
        narrowed = given.get("assistant") if scope == BudgetScope.GUEST else None
        self.instance.assistant_id = narrowed and narrowed.pk
        return given


def _belongs(row: Any, organization: Any) -> bool:
    if hasattr(row, "organization_id"):
        return bool(row.organization_id == organization.pk)
    return Membership.objects.filter(organization=organization, user=row).exists()
