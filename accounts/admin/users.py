"""Give operators pages of users, and of the groups that give operators their rights."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as RightsGroup
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.models import Invitation, User
from amber.lib.operator_pages import OperatorAdmin, PagedAdmin
from amber.lib.operator_pages.cells import write_state


class NewUserForm(UserCreationForm):
    """Asks for no organization: a personal one is created at the first login."""

    class Meta:
        model = User
        fields = ("email", "name")

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.with_email(email).exists():
            raise forms.ValidationError(_("An account with this address exists already."))
        return email


@admin.register(User)
class UserAdmin(DjangoUserAdmin, PagedAdmin):  # type: ignore[misc,type-arg]
    add_form = NewUserForm
    form = UserChangeForm
    change_password_form = AdminPasswordChangeForm
    ordering = ("-id",)
    list_display = ("email", "name", "state", "is_staff", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "name", "=id")
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("email", "password", "name", "time_zone")}),
        (_("Mails"), {"fields": ("language", "mail_notices")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "usable_password", "password1", "password2")}),
    )
    filter_horizontal = ()
    autocomplete_fields = ("groups",)

    @admin.display(description=_("state"), ordering="is_active")
    def state(self, user: User) -> Any:
        return write_state("active" if user.is_active else "disabled")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Delete the open invitations of a disabled user: they must not count after a return."""
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            Invitation.objects.filter(invited_by=obj).end()


admin.site.unregister(RightsGroup)


@admin.register(RightsGroup)
class RightsGroupAdmin(DjangoGroupAdmin, OperatorAdmin):  # type: ignore[misc]
    """Django's page for groups of operators, in the look of the other pages."""

    list_display = ("name",)
