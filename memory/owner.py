"""Whose memories: one user's, or one guest's, in one organization."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.principal import Principal
from amber.lib.hybrid import pool_word


@dataclass(frozen=True, slots=True)
class Owner:
    """Exactly one of `user_id` and `guest_id` is set."""

    organization_id: UUID
    user_id: UUID | None = None
    guest_id: str | None = None

    @classmethod
    def of(cls, principal: Principal) -> "Owner":
        if principal.guest_id is not None:
            return cls(principal.organization_id, guest_id=principal.guest_id)
        return cls(principal.organization_id, user_id=principal.user_id)

    @property
    def fields(self) -> dict[str, Any]:
        """As columns of a row, for filters and for new rows."""
        return {
            "organization_id": self.organization_id,
            "user_id": self.user_id,
            "guest_id": self.guest_id,
        }

    @property
    def word(self) -> str:
        """What all memories of this owner have in their index of words, and nobody else's."""
        return pool_word(f"memory:{self.organization_id.hex}", self.guest_id or str(self.user_id))
