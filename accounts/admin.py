"""Give operators pages of users, organizations and groups with their members, API keys and
invitations.

Hashes of keys and tokens are never shown, and keys are never made here: a key acts for the person
who makes it. Revoking is an action of one service call per key. What operators open and change on
any page is told to the audit log of the row's organization, which has a page here, too.
"""

from collections.abc import Iterator
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as RightsGroup
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts import services
from accounts.audit.actors import operator_of
from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.closing import close_organization
from accounts.mail.delivery import send_again
from accounts.mail.outbox import enqueue_mails
from accounts.models import (
    ApiKey,
    AuditEvent,
    Group,
    GroupMember,
    Invitation,
    Membership,
    Organization,
    OutgoingMail,
    User,
)
from amber.lib.operator_pages import OperatorAct, PagedAdmin, ReadOnlyAdmin, watch_operators


class NewUserForm(UserCreationForm):
    """Asks for no organization: a personal one is created at the first login."""

    class Meta:
        model = User
        fields = ("email", "name")

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError("An account with this address exists already.")
        return email


@admin.register(User)
class UserAdmin(DjangoUserAdmin, PagedAdmin):  # type: ignore[misc,type-arg]
    add_form = NewUserForm
    form = UserChangeForm
    change_password_form = AdminPasswordChangeForm
    ordering = ("-id",)
    list_display = ("email", "name", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "name")
    readonly_fields = ("id", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("id", "email", "password", "name", "time_zone")}),
        (_("Mails"), {"fields": ("language", "mail_notices")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "usable_password", "password1", "password2")}),
    )
    filter_horizontal = ("groups",)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Delete the open invitations of a disabled user: they must not count after a return."""
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            Invitation.objects.filter(invited_by=obj).end()


admin.site.unregister(RightsGroup)


@admin.register(RightsGroup)
class RightsGroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Django's page for groups of operators, in the look of the other pages."""


class MembershipInline(TabularInline):
    model = Membership
    fields = ("user", "role")
    ordering = ("id",)
    raw_id_fields = ("user",)
    extra = 0
    per_page = 50


@admin.register(Organization)
class OrganizationAdmin(PagedAdmin):
    """Deletes as owners do: at once out of sight, the row itself last, in the background."""

    list_display = ("name", "slug", "personal", "retention_days", "created_at", "deleted_at")
    list_filter = ("personal",)
    search_fields = ("name", "slug")
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    fields = (
        "id",
        "name",
        "slug",
        "personal",
        "retention_days",
        "default_prompt",
        "turns_at_once",
        "turn_weight",
        "created_at",
        "updated_at",
        "deleted_at",
    )
    inlines = (MembershipInline,)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse personal organizations, which are deleted with their account."""
        is_kept = obj is not None and obj.personal
        return not is_kept and super().has_delete_permission(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return names only: all the rows in them would be too many to load, let alone to show."""
        return [str(organization) for organization in objs], {}, set(), []

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Save memberships; a member who is demoted or removed takes open invitations along.

        A membership that is given to another user leaves its groups, as if it were a new one.
        """
        for row in formset.initial_forms:
            if "user" in row.changed_data:
                GroupMember.objects.filter(
                    organization_id=form.instance.pk, user_id=row.initial["user"]
                ).delete()
        super().save_formset(request, form, formset, change)
        for removed in formset.deleted_objects:
            Invitation.objects.sent_by(removed).end()
        for membership, _fields in formset.changed_objects:
            Invitation.objects.sent_by(membership).end(beyond=membership.role)
        by = operator_of(request)
        for action, membership in _membership_changes(formset):
            record(
                by,
                action,
                membership,
                organization_id=form.instance.pk,
                detail={"role": membership.role},
            )

    def delete_model(self, request: HttpRequest, obj: Organization) -> None:
        close_organization(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Organization]) -> None:
        for organization in queryset.filter(personal=False):
            close_organization(organization)


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
            self.add_error("name", "A group of the organization has this name already.")
        return cleaned


class GroupMemberForm(forms.ModelForm[GroupMember]):
    def clean_user(self) -> Any:
        user = self.cleaned_data["user"]
        # The group itself may be new: the row could not read it yet.
        group: Any = self.fields["group"]
        organization_id = group.parent_instance.organization_id
        if not Membership.objects.filter(organization_id=organization_id, user=user).exists():
            raise forms.ValidationError("This user is not a member of the organization.")
        return user


class GroupMemberInline(TabularInline):
    model = GroupMember
    form = GroupMemberForm
    fields = ("user",)
    ordering = ("id",)
    raw_id_fields = ("user",)
    extra = 0
    per_page = 50


@admin.register(Group)
class OrganizationGroupAdmin(PagedAdmin):
    """Groups within an organization, with their members. What they are granted is shown there."""

    form = GroupForm
    list_display = ("name", "organization", "description", "created_at")
    list_select_related = ("organization",)
    search_fields = ("name", "organization__slug")
    fields = ("organization", "name", "description")
    raw_id_fields = ("organization",)
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


class GrantInline(TabularInline):
    """Shows the groups that a row is shared with; its users change them."""

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


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Revokes keys and never deletes them: the ledger and rotated keys point at them."""

    list_display = (
        "name",
        "prefix",
        "organization",
        "user",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("organization", "user")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "prefix", "user__email")
    exclude = ("sha256",)
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apikey")

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            services.revoke_api_key(key, by=operator_of(request))
        messages.success(request, "Revoked.")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ("email", "organization", "role", "expires_at", "accepted_at")
    list_select_related = ("organization",)
    search_fields = ("email",)
    exclude = ("token_sha256",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow deleting, which withdraws the invitation."""
        return bool(PagedAdmin.has_delete_permission(self, request, obj))


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin):
    """Shows which mails are on their way, were sent, or failed and why; never what is in them."""

    list_display = ("created_at", "address", "kind", "status", "attempt", "due_at", "error")
    list_filter = ("status", "kind")
    list_select_related = ("organization",)
    search_fields = ("address",)
    fields = (
        "id",
        "address",
        "kind",
        "organization",
        "status",
        "error",
        "attempt",
        "created_at",
        "due_at",
        "handed_at",
        "ended_at",
        "language",
        "cause",
    )
    actions = ("send_again",)

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_outgoingmail")

    @admin.action(description=_("Send failed mails again"), permissions=["send_again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> None:
        count = sum(send_again(mail) for mail in queryset)
        enqueue_mails()
        said = ngettext("{count} mail is sent again.", "{count} mails are sent again.", count)
        messages.success(request, said.format(count=count))


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Shows the audit logs of all organizations; nobody changes them, here or elsewhere."""

    list_display = (
        "created_at",
        "organization",
        "number",
        "action",
        "actor_kind",
        "actor_user_id",
        "target_kind",
        "target_label",
        "address",
    )
    list_filter = ("actor_kind", "action")
    list_select_related = ("organization",)
    search_fields = ("=organization__slug", "=actor_user_id", "=target_id")


_ACTIONS: Final[dict[OperatorAct, AuditAction]] = {
    "read": AuditAction.OPERATOR_READ,
    "added": AuditAction.OPERATOR_ADDED,
    "changed": AuditAction.OPERATOR_CHANGED,
    "deleted": AuditAction.OPERATOR_DELETED,
}


def _record_operator(request: HttpRequest, act: OperatorAct, row: Model, fields: list[str]) -> None:
    """Tell the log of the row's organization; what belongs to none has no log."""
    is_tenant = isinstance(row, Organization)
    organization_id = row.pk if is_tenant else getattr(row, "organization_id", None)
    if organization_id is not None:
        by, detail = operator_of(request), {"fields": fields} if fields else None
        record(by, _ACTIONS[act], row, organization_id=organization_id, detail=detail)


watch_operators(_record_operator)


def _membership_changes(formset: Any) -> Iterator[tuple[AuditAction, Membership]]:
    """Yield what a saved formset did to members. One who was replaced by another was removed."""
    for removed in formset.deleted_objects:
        yield AuditAction.MEMBER_REMOVED, removed
    for membership, fields in formset.changed_objects:
        if "user" in fields:
            before = next(form.initial for form in formset if form.instance == membership)
            yield (
                AuditAction.MEMBER_REMOVED,
                Membership(user_id=before["user"], role=before["role"]),
            )
            yield AuditAction.MEMBER_JOINED, membership
        elif "role" in fields:
            yield AuditAction.MEMBER_ROLE_CHANGED, membership
    for added in formset.new_objects:
        yield AuditAction.MEMBER_JOINED, added
