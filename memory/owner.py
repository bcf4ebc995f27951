"""Say whose memories are meant: one user's, or one guest's, in one organization."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.principal import Principal
from amber.lib.search.hybrid import pool_word


@dataclass(frozen=True, slots=True)
class Owner:
    """The person whom memories belong to. Exactly one of `user_id` and `guest_id` is set."""

    organization_id: UUID
    user_id: UUID | None = None
    guest_id: str | None = None

    @classmethod
    def of(cls, principal: Principal) -> "Owner":
        return cls.asking(principal.organization_id, principal.user_id, principal.guest_id)

    @classmethod
    def asking(
        cls, organization_id: UUID, user_id: UUID | None, guest_id: str | None = None
    ) -> "Owner":
        """Return the owner that a chat or a turn names: the guest, if it names one."""
        return cls(organization_id, None if guest_id else user_id, guest_id or None)

    @property
    def fields(self) -> dict[str, Any]:
        """The owner as columns of a row, for filters and for new rows."""
        return {
            "organization_id": self.organization_id,
            "user_id": self.user_id,
            "guest_id": self.guest_id,
        }

    @property
    def condition(self) -> str:
        """The owner as SQL over `fields`. (`IS NOT DISTINCT FROM` would find no index.)"""
        if self.guest_id is not None:
            who = "guest_id = %(guest_id)s AND user_id IS NULL"
        else:
            who = "user_id = %(user_id)s AND guest_id IS NULL"
        return f"organization_id = %(organization_id)s AND {who}"

    @property
    def word(self) -> str:
        """The word that all memories of this owner have in their index, and nobody else's."""
        return pool_word(f"memory:{self.organization_id.hex}", self.guest_id or str(self.user_id))
