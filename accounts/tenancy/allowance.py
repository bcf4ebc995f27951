"""Limit how many rows of a kind one caller may have, counted in the transaction that adds one."""

from django.db import connection
from django.db.models import Model

from accounts.principal import Principal
from amber.lib.errors import Conflict


def refuse_beyond(model: type[Model], principal: Principal, most: int, *, said: str) -> None:
    """Raise Conflict with the words `said` if the caller has `most` rows already.

    Call it inside the transaction that adds a row. Two queries.
    """
    name = f"{model._meta.label} {principal.organization_id} {principal.label}"
    # Two at once would count the same rows: until the transaction's end the caller adds no other.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
    mine = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    if mine.count() >= most:
        raise Conflict(said)
