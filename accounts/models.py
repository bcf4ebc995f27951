"""Store organizations, users, groups, keys and the audit log."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.functions import Lower, Now
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.audit_actions import AuditAction
from accounts.principal import ActorKind, Principal
from accounts.tenant_rows import NOBODY, MemberQuerySet, Right, TenantQuerySet, TenantRow
from amber.lib.database.lease import Leased, LeasedQuerySet
from amber.lib.database.rows import Row


class Role(models.TextChoices):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


GRANTS: Final[Mapping[str, tuple[str, ...]]] = {
    Role.OWNER: (Role.OWNER, Role.ADMIN, Role.MEMBER),
    Role.ADMIN: (Role.ADMIN, Role.MEMBER),
    Role.MEMBER: (),
}
"""Which roles a role may give and take."""


class OrganizationQuerySet(models.QuerySet["Organization"]):
    """A person sees the organizations they are in; a key its own; a guest none."""

    def visible_to(self, principal: Principal) -> Self:
        """Return what the principal sees; each row carries `role`, the caller's in it."""
        mine = Q(memberships__user_id=principal.user_id, memberships__user_id__isnull=False)
        if principal.key is not None:
            mine &= Q(pk=principal.organization_id)
        return self.filter(mine).annotate(role=F("memberships__role"))

    def writable_by(self, principal: Principal) -> Self:
        """Return what an owner or admin may change; keys may change none."""
        seen = self.visible_to(principal)
        return seen.none() if principal.key else seen.filter(role__in=[Role.OWNER, Role.ADMIN])


class Organization(Row):
    """The tenant. `retention_days` None keeps chats until they are deleted.

    With `deleted_at` it has no members any more, and its rows are being deleted.
    """

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    personal = models.BooleanField(default=False)
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    default_prompt = models.TextField(
        blank=True,
        default="",
        help_text="Opens the system prompt of every assistant here that does not disable it.",
    )
    turns_at_once = models.PositiveIntegerField(
        _("turns at once"),
        null=True,
        blank=True,
        help_text=_(
            "How many of its turns may run at the same time. Empty: AMBER_TURNS_PER_ORGANIZATION. 0: any number."
        ),
    )
    turn_weight = models.PositiveSmallIntegerField(
        _("weight"),
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("With 2 it gets twice the share of the workers while others wait, too."),
    )
    trace_content = models.BooleanField(
        _("texts in traces"),
        default=False,
        db_default=False,
        help_text=_(
            "Where operators collect traces, they hold what people asked and what models and tools answered."
        ),
    )
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = OrganizationQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def with_email(self, email: str) -> "models.QuerySet[User]":
        """Return the account of this address, in whatever case it is written: by the index, one at most.

        Not by `iexact`: Postgres' upper case makes `ı` an `I`, so that an address of another domain
        would be found for it.
        """
        return self.filter(Exact(Lower("email"), email.strip().lower()))

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.with_email(username or "").get()


class Language(models.TextChoices):
    ENGLISH = "en", "English"
    GERMAN = "de", "Deutsch"
    CHINESE = "zh-hans", "简体中文"


class User(Row, AbstractBaseUser, PermissionsMixin):
    """A person; signs in by email. Staff are operators of the installation.

    Mails are written in `language`, blank: the installation's. `mail_notices`: they want those mails,
    too, that nobody needs to sign in (`accounts.mail`).
    """

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200, blank=True, default="")
    time_zone = models.CharField(max_length=64, default="UTC")
    language = models.CharField(
        max_length=10, choices=Language.choices, blank=True, default="", db_default=""
    )
    mail_notices = models.BooleanField(default=True, db_default=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    date_joined = models.DateTimeField(default=timezone.now)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_ci")]

    def __str__(self) -> str:
        return self.email


class Membership(TenantRow):
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints = [
            # Group members refer to the pair.
            models.UniqueConstraint(fields=["organization", "user"], name="one_membership"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"


class GroupQuerySet(TenantQuerySet):
    """Every member sees the groups, to share with them, as do keys of no single assistant; admins
    change them."""

    def annotate_members(self, principal: Principal) -> Self:
        """Give each group `member_count` and `is_member`, whether the principal is in it."""
        mine = GroupMember.objects.filter(group=OuterRef("pk"), user_id=principal.user_id or NOBODY)
        return self.annotate(member_count=Count("members"), is_member=Exists(mine))

    def _seen_by(self, principal: Principal) -> Q:
        is_outside = principal.user_id is None or principal.assistant_id is not None
        return Q(pk__in=[]) if is_outside else Q()

    def _written_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else Q(pk__in=[])


class Group(TenantRow):
    """Some members of an organization, to share assistants, libraries and tools with."""

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")

    objects = GroupQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint("organization", Lower("name"), name="one_group_name"),
            # What refers to a group names its organization, too, which must be the same.
            models.UniqueConstraint(fields=["organization", "id"], name="group_of_organization"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupMemberQuerySet(TenantQuerySet):
    """Who is in a group is seen by those who are, and by admins; these change it, and whoever
    wants to leaves. Keys see nothing of it."""

    def _seen_by(self, principal: Principal) -> Q:
        if principal.user_id is None or principal.key is not None:
            return Q(pk__in=[])
        mine = GroupMember.objects.filter(user_id=principal.user_id)
        return Q() if principal.is_admin else Q(group__in=mine.values("group"))

    def _written_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else Q(user_id=principal.user_id)


class GroupMember(TenantRow):
    """A member of the organization who is in a group.

    The database holds it to the membership (`0007_groups`): it ends when that does, whoever ends
    it.
    """

    # The constraint's index begins with this column.
    group = models.ForeignKey(
        Group, on_delete=models.CASCADE, related_name="members", db_index=False
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")

    objects = GroupMemberQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "user"], name="once_in_a_group"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


class GrantQuerySet(models.QuerySet[Any]):
    """Grants are shown to those who may share the row that they are of."""

    def held_by(self, user_id: UUID | OuterRef, *, in_person: bool = False) -> Self:
        """Return the grants to groups that the user is in.

        `in_person`: those to every group count for an admin; the user's role is looked up.
        """
        mine = GroupMember.objects.filter(user_id=user_id)
        held = Q(group__in=mine.values("group"))
        if in_person:
            administers = Membership.objects.filter(
                organization=OuterRef("organization"),
                user_id=user_id,
                role__in=[Role.OWNER, Role.ADMIN],
            )
            held |= Q(Exists(administers))
        return self.filter(held)


class Grant(TenantRow):
    """A right to one row for everybody in a group; abstract.

    The models of assistants, libraries and tools have a subclass each, whose `row_name` names its
    foreign key to the row. The database refuses a group of another organization than the row's.
    """

    row_name: ClassVar[str]

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    right = models.CharField(
        max_length=4,
        choices=[(right.value, right.label) for right in (Right.USE, Right.EDIT)],
        default=Right.USE,
    )

    objects = GrantQuerySet.as_manager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.group}: {self.right}"


class InvitationQuerySet(MemberQuerySet):
    """Only admins see invitations."""

    def _seen_by(self, principal: Principal) -> Q:
        return self._written_by(principal)

    def open(self) -> Self:
        """Return those that can be accepted: their sender may still give the role."""
        inviter = Membership.objects.filter(
            organization=OuterRef("organization"),
            user=OuterRef("invited_by"),
            user__is_active=True,
        )
        is_covered = Q(pk__in=[])
        for role, grants in GRANTS.items():
            is_covered |= Q(Exists(inviter.filter(role=role)), role__in=grants)
        return self.filter(is_covered, accepted_at__isnull=True, expires_at__gt=timezone.now())

    def sent_by(self, membership: "Membership") -> Self:
        return self.filter(
            organization_id=membership.organization_id, invited_by_id=membership.user_id
        )

    def end(self, *, beyond: str = Role.MEMBER) -> None:
        """Delete those not accepted that somebody of the role `beyond` may not send."""
        self.filter(accepted_at__isnull=True).exclude(role__in=GRANTS[beyond]).delete()


class Invitation(TenantRow):
    """An email address invited to join; the token is shown once and only its hash is kept.

    `is_mailed`: a mail with the link was written, too.
    """

    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    token_sha256 = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    is_mailed = models.BooleanField(default=False, db_default=False, editable=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "organization",
                Lower("email"),
                condition=Q(accepted_at__isnull=True),
                name="one_open_invitation",
            ),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def inviter(self) -> str:
        """Return who invites: their name, or else their address; empty if their account is gone."""
        by = self.invited_by
        return (by.name or by.email) if by else ""


class ApiKeyQuerySet(TenantQuerySet):
    """A user's own keys; admins see and revoke all keys of the organization. Keys see no keys."""

    def _seen_by(self, principal: Principal) -> Q:
        if principal.key or principal.user_id is None:
            return Q(pk__in=[])
        return Q() if principal.is_admin else Q(user_id=principal.user_id)

    def _written_by(self, principal: Principal) -> Q:
        """Limit changes to the key's user: whoever changes or rotates a key can act as them."""
        return Q(user_id=principal.user_id) & self._seen_by(principal)

    def live(self) -> Self:
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=Now()), revoked_at__isnull=True
        )

    def same_as(self, key: "ApiKey") -> Self:
        """Return the key itself, and those it was rotated from or to."""
        first_id = key.lineage_id or key.pk
        return self.filter(Q(pk=first_id) | Q(lineage_id=first_id))

    def first_ids(self, ids: Collection[UUID]) -> dict[UUID, UUID]:
        """Map each of these keys to the first one it was rotated from. One query."""
        rotated = self.filter(pk__in=ids, lineage_id__isnull=False)
        return {pk: pk for pk in ids} | dict(rotated.values_list("pk", "lineage_id"))


def made_with(principal: Principal) -> Q:
    """Limit a key of one assistant to those of its user's rows that name it as `api_key`.

    A key it was rotated from or to counts as the same one. Other principals are not limited.
    """
    if principal.key is None or not principal.is_bound_key:
        return Q()
    return Q(api_key_id__in=ApiKey.objects.same_as(principal.key).values("pk"))


class Scope(models.TextChoices):
    """What a key may be used for (docs/accounts.md). A key without scopes has them all."""

    READ = "read", "GET under /api/v1"
    WRITE = "write", "every other method under /api/v1"
    PUBLIC = "public", "the public API: /v1, /chat"
    MCP = "mcp", "the MCP server: /mcp"


class ApiKey(TenantRow):
    """A credential that acts for its creator; shown once, kept as a SHA-256.

    `assistant_id` (a plain id: `assistants` is a layer above) limits it to one assistant. `prefix`
    is the beginning of the key, so that people recognise it. `scopes` are names of
    docs/accounts.md. `lineage_id` is the id of the first key it was rotated from, and null for a
    first one. `oauth_client` is the id of the application that the key stands for
    (`accounts.sign_in.applications`): nobody knows such a key, the application's tokens act as it.
    """

    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    assistant_id = models.UUIDField(null=True, blank=True)
    scopes: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=40), default=list, blank=True
    )
    origins: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=300), default=list, blank=True
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    rotated_from = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    lineage_id = models.UUIDField(null=True, blank=True)
    oauth_client = models.CharField(max_length=100, blank=True, default="")

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        indexes = [
            models.Index(fields=["organization", "-created_at"], name="api_key_org"),
            GinIndex(fields=["origins"], name="api_key_origins"),
            models.Index(
                fields=["user", "oauth_client"],
                condition=~Q(oauth_client=""),
                name="api_key_application",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class MailKind(models.TextChoices):
    """What a mail is about; `accounts.mail.texts` has the words."""

    INVITATION = "invitation", "invitation"
    ADDRESS_PROOF = "address_proof", "proof of an address"
    PASSWORD_RESET = "password_reset", "password reset"
    ACCOUNT_EXISTS = "account_exists", "the account exists already"
    NO_ACCOUNT = "no_account", "there is no account"
    ACCOUNT_CHANGE = "account_change", "change of an account"
    BUDGET = "budget", "budget warning"
    FAILED_DOCUMENTS = "failed_documents", "failed documents"
    FAILED_REPOSITORY = "failed_repository", "failed Git import"


class MailStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SENT = "sent"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OutgoingMailQuerySet(TenantQuerySet, LeasedQuerySet):  # type: ignore[override]  # as_manager
    """Mails, which only operators see."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(pk__in=[])


class OutgoingMail(Row, Leased):
    """A mail on its way, written in the transaction of what it tells of (`accounts.mail.outbox`).

    There is one for each `cause` and address. `details_sealed` is what `accounts.mail.texts` makes the
    words of, encrypted, since a link in it may be as good as a password; it is erased when the mail was
    sent. From `handed_at` on the mail server may have it: then no other attempt is made unless the
    server refused it. `organization` is that of the cause; signing in has none.
    """

    organization = models.ForeignKey(
        Organization, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    address = models.EmailField()
    kind = models.CharField(max_length=20, choices=MailKind.choices)
    cause = models.CharField(max_length=200)
    language = models.CharField(max_length=10, blank=True, default="")
    details_sealed = models.TextField(blank=True, default="", editable=False)
    status = models.CharField(max_length=10, choices=MailStatus.choices, default=MailStatus.QUEUED)
    due_at = models.DateTimeField()
    handed_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True, default="")

    objects = OutgoingMailQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "cause", "address"],
                nulls_distinct=False,
                name="one_mail_per_cause",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(status="queued"), name="mail_due"),
            models.Index(fields=["lease_until"], condition=Q(status="running"), name="mail_leased"),
            models.Index(fields=["created_at"], name="mail_age"),
            models.Index(fields=["ended_at"], condition=Q(status="failed"), name="mail_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.address}"


class IdempotencyRecord(TenantRow):
    """The first answer to a POST that starts work, kept for 24 hours (docs/accounts.md).

    `status` is null until the first request is answered.
    """

    principal = models.CharField(max_length=240)
    route = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    body_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "principal", "route", "key"], name="one_idempotency_key"
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"


class AuditEventQuerySet(TenantQuerySet):
    """Only owners and admins in person see the log, and nobody changes it."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else Q(pk__in=[])

    def _written_by(self, principal: Principal) -> Q:
        return Q(pk__in=[])


class AuditEvent(TenantRow):
    """One act, told by `accounts.audit.recording` in the transaction of the act, and never changed:
    a trigger refuses it. `hash` covers all other columns, among them that of the event before.

    It names people by their ids only, so that an erased person leaves no name behind.
    """

    # The migration's own constraint deletes the rows with their organization: Postgres does that,
    # so that nobody else needs the right to.
    organization = models.ForeignKey(
        Organization, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    number = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()
    updated_at = None  # type: ignore[assignment]
    action = models.CharField(max_length=40, choices=AuditAction.choices)
    actor_kind = models.CharField(max_length=12, choices=ActorKind.choices)
    actor_user_id = models.UUIDField(null=True, blank=True)
    actor_key_id = models.UUIDField(null=True, blank=True)
    target_kind = models.CharField(max_length=40)
    target_id = models.UUIDField()
    target_label = models.CharField(max_length=200, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)
    previous_hash = models.CharField(max_length=64, blank=True, default="")
    hash = models.CharField(max_length=64)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "number"], name="one_audit_number"),
        ]
        indexes = [models.Index(fields=["organization", "-created_at"], name="audit_org_time")]

    def __str__(self) -> str:
        return f"{self.number}: {self.get_action_display()}"


class AuditChain(models.Model):
    """The number and hash of an organization's newest event: the lock of those who append, and what
    tells that the end was cut off."""

    organization = models.OneToOneField(
        Organization,
        primary_key=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
    )
    number = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.number} events of {self.organization}"
