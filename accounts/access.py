"""One row by its id, through its one door: absent or invisible is 404, visible only is 403."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model

from accounts.principal import Principal
from amber.lib.errors import Forbidden, Missing

AnyRow = TypeVar("AnyRow", bound=Model)


def get_visible(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow:
    """One query, which leaves the large columns in `without` unread. Raises Missing."""
    rows = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    row: AnyRow | None = rows.defer(*without).filter(pk=pk).first()
    if row is None:
        raise Missing
    return row


def get_writable(
    model: type[AnyRow], principal: Principal, pk: UUID, *, without: tuple[str, ...] = ()
) -> AnyRow:
    """One query, and another for a refusal. Raises Missing, Forbidden."""
    rows = model._default_manager.writable_by(principal)  # type: ignore[attr-defined]
    row: AnyRow | None = rows.defer(*without).filter(pk=pk).first()
    if row is None:
        get_visible(model, principal, pk, without=without)
        raise Forbidden
    return row
