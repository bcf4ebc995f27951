"""Give operators pages of groups with their members, and other apps the part that shows grants to them."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts.models import Group, GroupMember, Membership
from amber.lib.operator_pages import OperatorTabularInline, PagedAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION


class GroupForm(forms.ModelForm[Group]):
    class Meta:
        model = Group
        fields = ("organization", "name", "description")

    def clean(self) -> dict[str, Any]:
        """Refuse a name that is taken; the model's check leaves out an organization that is
        fixed."""
        cleaned = super().clean() or {}
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        others = Group.objects.filter(
            organization=organization, name__iexact=cleaned.get("name", "")
        ).exclude(pk=self.instance.pk)
        if others.exists():
            self.add_error("name", _("A group of the organization has this name already."))
        return cleaned


class GroupMemberForm(forms.ModelForm[GroupMember]):
    def clean_user(self) -> Any:
        user = self.cleaned_data["user"]
        # The group itself may be new: the row could not read it yet.
        group: Any = self.fields["group"]
        organization_id = group.parent_instance.organization_id
        if not Membership.objects.filter(organization_id=organization_id, user=user).exists():
            raise forms.ValidationError(_("This user is not a member of the organization."))
        return user


class GroupMemberInline(OperatorTabularInline):
    model = GroupMember
    form = GroupMemberForm
    fields = ("user",)
    ordering = ("id",)
    autocomplete_fields = ("user",)
    named_rows = ("user", "group")
    extra = 0
    per_page = 50


@admin.register(Group)
class OrganizationGroupAdmin(PagedAdmin):
    """Groups within an organization, with their members. What they are granted is shown there."""

    form = GroupForm
    list_display = ("name", "organization", "description", "created_at")
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("organization",)
    search_fields = ("name", "=id", "organization__name", "organization__slug")
    fields = ("organization", "name", "description")
    autocomplete_fields = ("organization",)
    inlines = (GroupMemberInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Fix the organization: a group does not move to another tenant."""
        return ("organization",) if obj else ()

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Give new members the organization of their group."""
        for member in formset.save(commit=False):
            member.organization_id = form.instance.organization_id
            member.save()
        for member in formset.deleted_objects:
            member.delete()


class GrantInline(OperatorTabularInline):
    """Shows the groups that a row is shared with; its users change them."""

    named_rows = ("group",)
    fields = ("group", "right", "created_at")
    readonly_fields = fields
    ordering = ("id",)
    extra = 0
    per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
