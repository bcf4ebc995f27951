"""Read one row by its id, through its one door: absent or invisible is 404, read-only is 403.

For models whose visibility to people depends on the caller's organization and user alone
(`seen_by_person`) the statement is built once, by the same `visible_to`.
"""

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from accounts.models import User
from accounts.principal import Principal
from amber.lib.database.cached_sql import cache_sql
from amber.lib.errors import Forbidden, Missing

AnyRow = TypeVar("AnyRow", bound=Model)


def get_visible(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow:
    """Return the row in one query, without the large columns in `without`. Raises Missing."""
    row = find_visible(model, principal, pk, without=without)
    if row is None:
        raise Missing
    return row


def find_visible(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow | None:
    """Return the row as `get_visible` does; None for what is absent or invisible."""
    user_id = principal.user_id
    is_person = principal.guest_id is None and principal.assistant_id is None
    if user_id and is_person and not without and getattr(model, "seen_by_person", False):
        organization_id = principal.organization_id
        found = _seen_by_person(model, pk=pk, user_id=user_id, organization_id=organization_id)
        return found[0] if found else None
    rows = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    row: AnyRow | None = rows.defer(*without).filter(pk=pk).first()
    return row


@cache_sql
def _seen_by_person(
    model: Any, /, *, pk: UUID, user_id: UUID, organization_id: UUID
) -> QuerySet[Any]:
    person = Principal(organization_id=organization_id, user=User(pk=user_id))
    seen: QuerySet[Any] = model._default_manager.visible_to(person).filter(pk=pk)
    return seen


def get_writable(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow:
    """Return the row in one query, refuse in two. Raises Missing, Forbidden."""
    rows = model._default_manager.writable_by(principal)  # type: ignore[attr-defined]
    row: AnyRow | None = rows.defer(*without).filter(pk=pk).first()
    if row is None:
        get_visible(model, principal, pk, without=without)
        raise Forbidden
    return row
