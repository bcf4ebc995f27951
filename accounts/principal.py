"""Represent the caller: the result of authentication, and all that authorisation may look at."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import TextChoices

from amber.lib.database.tenant import Tenant

if TYPE_CHECKING:
    from accounts.models import ApiKey, User


class ActorKind(TextChoices):
    USER = "user", "a person, signed in"
    KEY = "key", "an API key, which acts for its user"
    OPERATOR = "operator", "an operator of the installation"
    NOBODY = "nobody", "nobody who proved who they are"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, as the audit log names them: by ids, never by name or email.

    `address` is the client's; empty for what was done on the server itself.
    """

    kind: ActorKind
    user_id: UUID | None = None
    key_id: UUID | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """The session that a request came with: its row's key, and the hash that binds it to the user's
    password, so that it ends when either changes."""

    key: str = field(repr=False)
    password_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Principal:
    """A user in an organization, by session or by key; or a guest of one public assistant.

    `user` is the acting user: a key acts for its creator, a guest for nobody (None). `session` is
    set if the request came with one. `assistant_id` limits a key or a guest to one assistant;
    `guest_epoch` is that of a guest's token. `find_address` returns the client's address, for the
    audit log: few requests need it, so it is not looked for in each. Without a request it is empty.
    """

    organization_id: UUID
    user: "User | None"
    role: str = "member"
    key: "ApiKey | None" = None
    guest_id: str | None = None
    assistant_id: UUID | None = None
    guest_epoch: int = 0
    session: BrowserSession | None = None
    find_address: Callable[[], str] = field(default=str, repr=False, compare=False)

    @property
    def user_id(self) -> UUID | None:
        return self.user.pk if self.user else None

    @property
    def tenant(self) -> Tenant:
        """Whose rows Postgres lets this caller touch."""
        return Tenant(self.organization_id, self.user_id, self.guest_id)

    @property
    def is_admin(self) -> bool:
        """Whether this is an owner or admin in person: a key never administers."""
        return self.key is None and self.role in ("owner", "admin")

    @property
    def is_bound_key(self) -> bool:
        """Whether this is a key of one assistant; such keys stand in web pages for all to read."""
        return self.key is not None and self.assistant_id is not None

    @property
    def actor(self) -> Actor:
        """Return the caller as the audit log names them."""
        if self.user is None:
            return Actor(ActorKind.NOBODY)
        if self.key is not None:
            return Actor(ActorKind.KEY, self.user_id, self.key.pk, self.find_address())
        return Actor(ActorKind.USER, self.user_id, address=self.find_address())

    @property
    def label(self) -> str:
        """One string per caller, for idempotency and rate limits."""
        if self.guest_id is not None:
            return f"guest:{self.guest_id}"
        return f"key:{self.key.pk}" if self.key else f"user:{self.user_id}"
