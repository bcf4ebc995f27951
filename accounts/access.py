"""One row by its id, through its one door: absent or invisible is 404, visible only is 403."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model

from accounts.principal import Principal
from amber.lib.errors import Forbidden, Missing

AnyRow = TypeVar("AnyRow", bound=Model)


def get_visible(model: type[AnyRow], principal: Principal, pk: UUID) -> AnyRow:
    """One query. Raises Missing."""
    row: AnyRow | None = model._default_manager.visible_to(principal).filter(pk=pk).first()  # type: ignore[attr-defined]
    if row is None:
        raise Missing
    return row


def get_writable(model: type[AnyRow], principal: Principal, pk: UUID) -> AnyRow:
    """One query, and another for a refusal. Raises Missing, Forbidden."""
    row: AnyRow | None = model._default_manager.writable_by(principal).filter(pk=pk).first()  # type: ignore[attr-defined]
    if row is None:
        get_visible(model, principal, pk)
        raise Forbidden
    return row
