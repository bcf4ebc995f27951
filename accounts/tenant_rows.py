"""Define what a tenant's row is, and `visible_to`: the only door to it."""

from typing import Any, ClassVar, Final, Self
from uuid import UUID

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, Value, When

from accounts.principal import Principal
from amber.lib.database.rows import Row


class TenantQuerySet(models.QuerySet[Any]):
    """Rows of one tenant. `visible_to` is the only way a row reaches a view.

    Subclasses say with `_seen_by` which rows of the organization a principal sees, and with
    `_written_by` which of those it may change; nobody sees a row of another organization.
    """

    def visible_to(self, principal: Principal) -> Self:
        return self.filter(self._seen_by(principal), organization_id=principal.organization_id)

    def writable_by(self, principal: Principal) -> Self:
        return self.visible_to(principal).filter(self._written_by(principal))

    def _seen_by(self, principal: Principal) -> Q:
        raise NotImplementedError

    def _written_by(self, principal: Principal) -> Q:
        return self._seen_by(principal)


class OwnedQuerySet(TenantQuerySet):
    """Rows of one user (or guest), which nobody else reads.

    A guest's row names as its `user` the owner of the key that the guest came by, who does not read
    it either.
    """

    def _seen_by(self, principal: Principal) -> Q:
        if principal.guest_id is not None:
            return Q(guest_id=principal.guest_id)
        if principal.user_id is None:
            return Q(pk__in=[])
        return Q(user_id=principal.user_id, guest_id__isnull=True)


NOBODY: Final = UUID(int=0)
"""Stands for a user that is NULL where a statement compares users: NULL in SQL equals nothing, and
no user has this id."""


class Right(models.TextChoices):
    """What somebody may do with an assistant, library or tool that they see; each includes the one
    before. A group is granted one of the first two."""

    USE = "use", "Use"
    EDIT = "edit", "Use and edit"
    OWN = "own", "Use, edit, share and delete"


ACCESS: Final = (
    "What you may do with it. `use`: see it and use it. `edit`: change it, too. `own`: also share "
    "and delete it."
)
"""Describes the field `access` of assistants, libraries and tools, which is a `Right`."""


class SharedQuerySet(TenantQuerySet):
    """Rows private to their creator, shared with the organization, or granted to groups.

    Who is in a group sees what it was granted, and changes it if the grant is to edit. Admins treat
    what any group was granted as they do what is shared. The model has `grants`, rows of its
    subclass of `Grant`.
    """

    def managed_by(self, principal: Principal) -> Self:
        """Return what the principal may share and delete: their own, as an admin also what others
        share."""
        return self.visible_to(principal).filter(self._managed_by(principal))

    def annotate_access(self, principal: Principal) -> Self:
        """Give each row `access`, the `Right` that the principal has. They must see the rows."""
        right = Case(
            When(self._managed_by(principal), then=Value(Right.OWN)),
            When(self._written_by(principal), then=Value(Right.EDIT)),
            default=Value(Right.USE),
            output_field=models.CharField(),
        )
        return self.annotate(access=right)

    def reaching_nobody(self) -> Self:
        """Return rows without owner that nobody else has a right to: only operators find them."""
        return self.filter(user__isnull=True, shared=False, grants__isnull=True)

    def _seen_by(self, principal: Principal) -> Q:
        if principal.user_id is None:
            return Q(pk__in=[])
        return Q(user_id=principal.user_id) | Q(shared=True) | self._granted_to(principal)

    def _written_by(self, principal: Principal) -> Q:
        managed = self._managed_by(principal)
        return managed if principal.is_admin else managed | self._granted_to(principal, Right.EDIT)

    def _managed_by(self, principal: Principal) -> Q:
        if principal.user_id is None or principal.assistant_id is not None:
            return Q(pk__in=[])
        own = Q(user_id=principal.user_id)
        return own | Q(shared=True) | self._granted_to(principal) if principal.is_admin else own

    def _granted_to(self, principal: Principal, *rights: Right) -> Q:
        """Return the condition that a grant counts for the principal: of one of `rights`, or any.

        Guests are in no group, though a key's guest names the key's user.
        """
        if principal.user_id is None or principal.guest_id is not None:
            return Q(pk__in=[])
        grants = self.model._meta.get_field("grants")
        held: Any = grants.related_model._default_manager.filter(
            **{grants.field.name: OuterRef("pk")}
        )
        if not principal.is_admin:
            held = held.held_by(principal.user_id)
        return Q(Exists(held.filter(right__in=rights) if rights else held))


class TenantRow(Row):
    """A row of one organization; abstract."""

    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.CASCADE, related_name="+"
    )

    seen_by_person: ClassVar[bool] = False
    """Whether the user, the organization and their role in it alone decide which rows a person
    sees, signed in or with an unbound key. `accounts.tenancy.access` then builds the statement only
    once for each role."""

    class Meta:
        abstract = True


class MemberQuerySet(TenantQuerySet):
    """Rows every member of the organization sees and its admins change."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(pk__in=[]) if principal.user_id is None or principal.key else Q()

    def _written_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else Q(pk__in=[])
