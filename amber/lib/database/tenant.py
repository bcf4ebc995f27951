"""Say whose rows a piece of work may touch; Postgres enforces it (`accounts.tenancy.wall`).

    with as_tenant(principal.tenant):
        ...                        # rows of this organization, and of this person in it
    with across_tenants():
        ...                        # rows of all: claims, sweeps, sign-in, operators

Code outside both blocks acts for nobody: its statements about tenants' rows fail. A block holds for the
thread or task that enters it, and for what that starts. Postgres is told ahead of the first statement
of each transaction (`amber.lib.postgres.base`) and forgets at its end, so that a pooled connection
carries nothing from one tenant to the next.

Work across tenants has a connection of its own, whose role no policy binds (the alias "system").
An installation with one role has no such alias: everything runs as that role.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connections

DEFAULT: Final = "default"
SYSTEM: Final = "system"
_OF_NO_GUEST: Final = re.compile(r"\*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organization, and whose rows of it: a user's, a guest's, or with `is_whole` everybody's.

    Without a user, a guest and `is_whole` only rows that belong to no person are touched. `NOBODY`
    has no organization either.
    """

    organization_id: UUID | None
    user_id: UUID | None = None
    guest_id: str | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a guest who would be taken for everybody, or for a user."""
        if self.guest_id is not None and _OF_NO_GUEST.fullmatch(self.guest_id):
            raise ValueError("A guest's id must be neither a UUID nor '*'.")

    @property
    def user_setting(self) -> str:
        """The setting `amber.user`: a user's id, a guest's, `*` for everybody, empty for nobody."""
        if self.is_whole:
            return "*"
        return self.guest_id if self.guest_id is not None else str(self.user_id or "")


NOBODY: Final = Tenant(organization_id=None)
EVERYBODY: Final = Tenant(organization_id=None, is_whole=True)
"""All rows of all organizations. Only `across_tenants` stands for it."""

_tenant: ContextVar[Tenant | None] = ContextVar("tenant", default=None)


def current_tenant() -> Tenant | None:
    """Return whom this work is for; None if nobody said, which Postgres treats as `NOBODY`."""
    return _tenant.get()


def act_as(tenant: Tenant | None) -> None:
    """Act for this tenant until the surrounding block ends.

    This is for requests, which learn on their way for whom they are. Elsewhere use `as_tenant`.
    """
    _tenant.set(tenant)


@contextmanager
def as_tenant(tenant: Tenant) -> Iterator[None]:
    """Act for this tenant inside of the block."""
    with _acting_for(tenant), _connected_as(DEFAULT):
        yield


@contextmanager
def for_whole_organization() -> Iterator[None]:
    """Act for everybody in the organization that this work is for, inside of the block.

    For single statements that rightly need more than the person's rights, and say themselves which
    rows they mean. Work across tenants stays what it is.
    """
    tenant = current_tenant()
    if tenant is None or tenant.organization_id is None or tenant.is_whole:
        yield
        return
    with _acting_for(Tenant(tenant.organization_id, is_whole=True)):
        yield


@contextmanager
def across_tenants() -> Iterator[None]:
    """Act for the installation inside of the block, over the system's connection.

    A transaction cannot span both. Raises RuntimeError inside of a tenant's.
    """
    with _acting_for(EVERYBODY), _connected_as(SYSTEM):
        yield


@contextmanager
def _acting_for(tenant: Tenant) -> Iterator[None]:
    token = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(token)


@contextmanager
def _connected_as(alias: str) -> Iterator[None]:
    """Let this thread's default connection be the app's or the system's inside of the block.

    The one that is put aside goes back to its pool, so that no thread waits for one pool while it
    holds a connection of the other.
    """
    outer: Any = connections[DEFAULT]
    if SYSTEM not in connections.settings or (outer.alias == SYSTEM) == (alias == SYSTEM):
        yield
        return
    if outer.in_atomic_block:
        raise RuntimeError("Begin work across tenants outside of a tenant's transaction.")
    outer.close()
    inner = _other_wrapper(outer)
    connections[DEFAULT] = inner
    try:
        yield
    finally:
        inner.close()
        connections[DEFAULT] = outer


def _other_wrapper(outer: Any) -> Any:
    """Return this thread's wrapper of the other alias; neither is in a transaction."""
    system: Any = connections[SYSTEM]
    if outer.alias != SYSTEM:
        # Django then knows the system's under both names: this alone leads back to the app's.
        system.put_aside = outer
        return system
    return getattr(system, "put_aside", None) or connections.create_connection(DEFAULT)
