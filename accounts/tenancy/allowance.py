"""How many rows of a kind one asker may have: counted in the transaction that adds another."""

from django.db import connection
from django.db.models import Model

from accounts.principal import Principal
from amber.lib.errors import Conflict


def refuse_beyond(model: type[Model], principal: Principal, most: int, *, said: str) -> None:
    """Call it inside the transaction that adds a row: until its end the asker adds no other.

    Two queries. Raises Conflict with these words.
    """
    name = f"{model._meta.label} {principal.organization_id} {principal.label}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
    mine = model._default_manager.visible_to(principal)  # type: ignore[attr-defined]
    if mine.count() >= most:
        raise Conflict(said)
