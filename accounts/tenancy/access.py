"""Read one row by its id, through its one door: absent or invisible is 404, read-only is 403.

For models whose visibility to people depends on the caller's organization, user and role alone
(`seen_by_person`) the statement is built once for each role, by the same `visible_to`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from rest_framework.exceptions import APIException

from accounts.models import Role, User
from accounts.principal import Principal
from accounts.tenant_rows import Right, SharedQuerySet
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import AmberError, Forbidden, Missing

AnyRow = TypeVar("AnyRow", bound=Model)

_NOT_MANAGED: Final = (
    "Only its creator, and an admin where it is shared, may share it or delete it, or change who "
    "may use it."
)


def get_visible(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow:
    """Return the row in one query, without the large columns in `without`. Raises Missing."""
    row = find_visible(model, principal, pk, without=without)
    if row is None:
        raise Missing
    return row


def get_all_visible(model: type[AnyRow], principal: Principal, pks: Sequence[UUID]) -> list[AnyRow]:
    """Return these rows in the order of their ids: one query, none without ids. Raises Missing."""
    if not pks:
        return []
    rows = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    found: dict[UUID, AnyRow] = rows.in_bulk(pks)
    if not all(pk in found for pk in pks):
        raise Missing
    return [found[pk] for pk in pks]


def lock_visible(model: type[AnyRow], principal: Principal, pk: UUID) -> AnyRow:
    """Return the row as `get_visible` does, locked until the transaction ends. Raises Missing."""
    row = find_visible(model, principal, pk, is_locked=True)
    if row is None:
        raise Missing
    return row


@contextmanager
def missing_first(model: type[Model], principal: Principal, pk: UUID) -> Iterator[None]:
    """Raise Missing instead of any other refusal in the block if the row is absent or invisible.

    What is wrong with a request would tell that the row exists. Makes one query, and only when
    something is refused.
    """
    try:
        yield
    except (APIException, AmberError):
        get_visible(model, principal, pk)
        raise


def find_visible(
    model: type[AnyRow],
    principal: Principal,
    pk: UUID,
    *,
    without: tuple[str, ...] = (),
    is_locked: bool = False,
) -> AnyRow | None:
    """Return the row as `get_visible` does; None for what is absent or invisible."""
    user_id = principal.user_id
    is_person = principal.guest_id is None and principal.assistant_id is None
    if user_id and is_person and not without and getattr(model, "seen_by_person", False):
        organization_id = principal.organization_id
        found = _seen_by_person(
            model,
            principal.is_admin,
            is_locked,
            pk=pk,
            user_id=user_id,
            organization_id=organization_id,
        )
        return found[0] if found else None
    rows = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    row: AnyRow | None = _lock(rows, is_locked).defer(*without).filter(pk=pk).first()
    return row


@cache_sql
def _seen_by_person(
    model: Any,
    is_admin: bool,
    is_locked: bool,
    /,
    *,
    pk: UUID,
    user_id: UUID,
    organization_id: UUID,
) -> QuerySet[Any]:
    # Visibility depends on this alone, so the statement for an admin is an owner's, too.
    role = Role.ADMIN if is_admin else Role.MEMBER
    person = Principal(organization_id=organization_id, user=User(pk=user_id), role=role)
    return _lock(model._default_manager.visible_to(person).filter(pk=pk), is_locked)


def _lock(rows: QuerySet[Any], is_locked: bool) -> QuerySet[Any]:
    return rows.select_for_update(no_key=True, of=("self",)) if is_locked else rows


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


def get_managed(model: type[AnyRow], principal: Principal, pk: UUID) -> AnyRow:
    """Return a row that the principal may share and delete, in one query; refuse in two.

    Raises Missing, Forbidden.
    """
    rows: QuerySet[AnyRow] = _shared_rows(model).managed_by(principal)
    row = rows.filter(pk=pk).first()
    if row is None:
        get_visible(model, principal, pk)
        raise Forbidden(_NOT_MANAGED)
    return row


def access_to(row: Model, principal: Principal) -> Right:
    """Return what the principal may do with a row that they see. One query, unless the row was
    loaded with `annotate_access`.

    Raises Missing for a row that was deleted in the same moment.
    """
    known = row.__dict__.get("access")
    if known is None:
        rows = _shared_rows(type(row)).annotate_access(principal).filter(pk=row.pk)
        with for_whole_organization():  # also one that they have just closed to themselves
            known = rows.values_list("access", flat=True).first()
    if known is None:
        raise Missing
    return Right(known)


def check_sharing(
    row: Model, principal: Principal, changes: Mapping[str, Any], *, names: Collection[str]
) -> None:
    """Raise Forbidden if the changes reach one of these fields, which only those who may share the
    row change. A value that stays is no change."""
    is_changed = any(name in changes and changes[name] != getattr(row, name) for name in names)
    if is_changed and access_to(row, principal) != Right.OWN:
        raise Forbidden(_NOT_MANAGED)


def _shared_rows(model: type[Model]) -> SharedQuerySet:
    rows = model._default_manager.all()
    assert isinstance(rows, SharedQuerySet)
    return rows
