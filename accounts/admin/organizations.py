"""Give operators pages of organizations with their members, and of invitations to them."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.audit.actors import operator_of
from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.closing import close_organization
from accounts.models import GroupMember, Invitation, Membership, Organization
from amber.lib.operator_pages import OperatorTabularInline, PagedAdmin, ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import write_state


class MembershipInline(OperatorTabularInline):
    model = Membership
    fields = ("user", "role")
    ordering = ("id",)
    autocomplete_fields = ("user",)
    named_rows = ("user",)
    extra = 0
    per_page = 50


@admin.register(Organization)
class OrganizationAdmin(PagedAdmin):
    """Deletes as owners do: at once out of sight, the row itself last, in the background."""

    list_display = (
        "name",
        "slug",
        "state",
        "personal",
        "member_count",
        "retention_days",
        "created_at",
    )
    list_filter = ("personal",)
    search_fields = ("name", "slug", "=id")
    readonly_fields = ("created_at", "updated_at", "deleted_at")
    fields = (
        "name",
        "slug",
        "personal",
        "retention_days",
        "default_prompt",
        "turns_at_once",
        "turn_weight",
        "trace_content",
        "created_at",
        "updated_at",
        "deleted_at",
    )
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        members = Membership.objects.filter(organization=OuterRef("pk")).order_by()
        counted = members.values("organization").annotate(n=Count("pk")).values("n")
        rows: QuerySet[Organization] = super().get_queryset(request)
        return rows.annotate(n_members=Coalesce(Subquery(counted), 0))

    @admin.display(description=_("state"))
    def state(self, organization: Organization) -> Any:
        return write_state("deleted" if organization.deleted_at else "active")

    @admin.display(description=_("members"))
    def member_count(self, organization: Any) -> int:
        return int(organization.n_members)

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


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = (
        "email",
        "state",
        "role",
        "organization",
        "invited_by",
        "created_at",
        "expires_at",
    )
    list_filter = (BY_ORGANIZATION, "role")
    list_select_related = ("organization", "invited_by")
    search_fields = ("email", "=id", "organization__name")
    exclude = ("token_sha256",)

    @admin.display(description=_("state"))
    def state(self, invitation: Invitation) -> Any:
        if invitation.accepted_at:
            return write_state("accepted")
        return write_state("expired" if invitation.expires_at <= timezone.now() else "open")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow deleting, which withdraws the invitation."""
        return bool(PagedAdmin.has_delete_permission(self, request, obj))


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
