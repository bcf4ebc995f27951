"""Give operators pages of users, organizations and groups with their members, API keys and
invitations.

Hashes of keys and tokens are never shown, and keys are never made here: a key acts for the person
who makes it. Revoking is an action of one service call per key. What operators open and change on
any page is told to the audit log of the row's organization, which has a page here, too.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Final

from allauth.account.models import EmailAddress
from allauth.idp.oidc.models import Client, Token
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.socialaccount.providers import registry
from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as RightsGroup
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget

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
from accounts.principal import ActorKind
from amber.lib.database.rows import Row
from amber.lib.operator_pages import (
    OperatorAct,
    OperatorAdmin,
    OperatorTabularInline,
    PagedAdmin,
    ReadOnlyAdmin,
    watch_operators,
)
from amber.lib.operator_pages.cells import write_name, write_names, write_state, write_text
from amber.lib.operator_pages.columns import Reference, reference_of
from amber.lib.operator_pages.filters import by_name


class NewUserForm(UserCreationForm):
    """Asks for no organization: a personal one is created at the first login."""

    class Meta:
        model = User
        fields = ("email", "name")

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(email__iexact=email).exists():
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
    list_filter = (by_name(),)
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


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Revokes keys and never deletes them: the ledger and rotated keys point at them."""

    list_display = (
        "name",
        "state",
        "prefix",
        "belongs_to",
        "last_used_at",
        "expires_at",
    )
    list_select_related = ("organization", "user")
    list_filter = (by_name(), ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "prefix", "=id", "user__email")
    references: ClassVar[dict[str, Reference]] = {
        "assistant_id": "assistants.Assistant",
        "lineage_id": "accounts.ApiKey",
    }
    fields = (
        "name",
        "prefix",
        "state",
        "user",
        "organization",
        "assistant_id",
        "scopes",
        "origins",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "rotated_from",
        "lineage_id",
        "oauth_client",
    )
    actions = ("revoke",)

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> Any:
        if key.revoked_at:
            return write_state("revoked")
        is_over = key.expires_at is not None and key.expires_at <= timezone.now()
        return write_state("expired" if is_over else "active")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apikey")

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            services.revoke_api_key(key, by=operator_of(request))
        messages.success(request, gettext("Revoked."))


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
    list_filter = (by_name(), "role")
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


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin):
    """Shows which mails are on their way, were sent, or failed and why; never what is in them."""

    list_display = ("created_at", "state", "address", "kind", "organization", "attempt", "due_at")
    list_filter = (by_name(), "status", "kind")
    list_select_related = ("organization",)
    search_fields = ("address", "=id", "=organization__slug")
    shows_seconds = True
    fields = (
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
    )
    actions = ("send_again",)

    @admin.display(description=_("state"), ordering="status")
    def state(self, mail: OutgoingMail) -> Any:
        return write_names(write_state(mail.status), mail.error)

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_outgoingmail")

    @admin.action(description=_("Send failed mails again"), permissions=["send_again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> None:
        count = sum(send_again(mail) for mail in queryset)
        enqueue_mails()
        said = ngettext("{count} mail is sent again.", "{count} mails are sent again.", count)
        messages.success(request, said.format(count=count))


_ACTORS: Final[dict[str, Any]] = {ActorKind.OPERATOR: _("Operator"), ActorKind.NOBODY: _("Nobody")}


@cache
def _models_by_kind() -> dict[str, str]:
    """Map the kinds of the audit log's targets (`accounts.audit.recording`) to models."""
    found = apps.get_models()
    return {
        model._meta.verbose_name_raw.lower().replace(" ", "_"): model._meta.label
        for model in sorted(found, key=lambda model: issubclass(model, Row))
    }


def model_of_target(event: AuditEvent) -> str:
    """Return the model of what an event was about; empty where its label names it."""
    return "" if event.target_label else _models_by_kind().get(event.target_kind, "")


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Shows the audit logs of all organizations; nobody changes them, here or elsewhere."""

    list_display = (
        "created_at",
        "action",
        "actor",
        "target",
        "organization",
        "address",
        "number",
    )
    list_filter = (by_name(), "actor_kind", "action")
    list_select_related = ("organization",)
    search_fields = ("=id", "=organization__slug", "=actor_user_id", "=target_id")
    shows_seconds = True
    references: ClassVar[dict[str, Reference]] = {
        "actor_user_id": "accounts.User",
        "actor_key_id": "accounts.ApiKey",
        "target_id": model_of_target,
    }
    fields = (
        "number",
        "organization",
        "created_at",
        "action",
        "actor",
        "address",
        "target",
        "detail",
        "previous_hash",
        "hash",
    )

    @admin.display(description=_("who"))
    def actor(self, event: AuditEvent) -> Any:
        """Name the person, and the key by which they did it."""
        user = reference_of(event, "actor_user_id", self.references)
        note = _ACTORS.get(event.actor_kind, "")
        if user is None:
            return gettext("Erased person") if event.actor_user_id else note
        key = event.actor_key_id and reference_of(event, "actor_key_id", self.references)
        return write_names(write_name(user), key or note)

    @admin.display(description=_("to what"))
    def target(self, event: AuditEvent) -> Any:
        """Name it as it was called then, or as it is called now."""
        model = _models_by_kind().get(event.target_kind)
        name = str(apps.get_model(model)._meta.verbose_name) if model else event.target_kind
        kind = capfirst(gettext(name))
        if event.target_label:
            return write_names(write_text(event.target_label), kind)
        found = reference_of(event, "target_id", self.references)
        return write_names(write_name(found), kind) if found else kind


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


def _adopt(model: type[Model], page: type[Any]) -> None:
    """Show a model of allauth's on a page of ours, with the actions of its own."""
    allauth_page = type(admin.site.get_model_admin(model))
    admin.site.unregister(model)
    admin.site.register(model, type(page.__name__, (page, allauth_page), {}))


class EmailAddressAdmin(OperatorAdmin):
    list_display = ("email", "state", "user", "primary")
    list_select_related = ("user",)
    search_fields = ("email", "user__name")
    raw_id_fields = ()
    autocomplete_fields = ("user",)

    @admin.display(description=_("state"), ordering="verified")
    def state(self, address: EmailAddress) -> Any:
        return write_state("verified" if address.verified else "unverified")


class SocialAppForm(forms.ModelForm[SocialApp]):
    """Asks for the provider by its name, in fields that look like those of other pages."""

    provider = forms.ChoiceField(choices=registry.as_choices, widget=UnfoldAdminSelectWidget)

    class Meta:
        model = SocialApp
        fields: ClassVar[list[str]] = [
            "provider",
            "provider_id",
            "name",
            "client_id",
            "secret",
            "key",
            "settings",
        ]


class SocialAppAdmin(OperatorAdmin):
    form = SocialAppForm
    list_display = ("name", "provider", "client_id")
    search_fields = ("name", "provider")


class SocialAccountAdmin(OperatorAdmin):
    list_display = ("user", "provider", "uid", "last_login", "date_joined")
    list_select_related = ("user",)
    search_fields = ("uid", "user__email")
    raw_id_fields = ()
    autocomplete_fields = ("user",)


class SocialTokenAdmin(OperatorAdmin):
    """Shows for whom there is a token, and nothing of the token itself."""

    list_display = ("account", "app", "expires_at")
    list_select_related = ("account__user", "app")
    list_filter = ("app",)
    raw_id_fields = ()
    autocomplete_fields = ("app", "account")


class ClientAdmin(OperatorAdmin):
    """Applications that people may let act for them (`accounts.sign_in.applications`)."""

    list_display = ("name", "type", "owner", "skip_consent", "created_at")
    exclude = ("id", "secret")
    readonly_fields = ("created_at",)
    list_select_related = ("owner",)
    search_fields = ("name", "id")
    raw_id_fields = ()
    autocomplete_fields = ("owner",)


class TokenAdmin(OperatorAdmin):
    list_display = ("application", "type", "user", "created_at", "expires_at")
    list_select_related = ("client", "user")
    search_fields = ("client__name", "user__email")
    raw_id_fields = ()
    fields = ("application", "type", "user", "created_at", "expires_at", "scopes")
    readonly_fields = ("application", "created_at")
    autocomplete_fields = ("user",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: applications get tokens by asking for them, and keep what nobody else knows."""
        return False

    @admin.display(description=_("application"), ordering="client__name")
    def application(self, token: Token) -> str:
        return str(token.client.name)


def _name_client(client: Client) -> str:
    return client.name or str(client.get_type_display())


def _name_token(token: Token) -> str:
    return f"{token.get_type_display()}: {token.user or token.client}"


# allauth calls these two by ids, in headings and in questions whether to delete them.
Client.__str__ = _name_client
Token.__str__ = _name_token

_adopt(EmailAddress, EmailAddressAdmin)
_adopt(SocialApp, SocialAppAdmin)
_adopt(SocialAccount, SocialAccountAdmin)
_adopt(SocialToken, SocialTokenAdmin)
_adopt(Client, ClientAdmin)
_adopt(Token, TokenAdmin)
