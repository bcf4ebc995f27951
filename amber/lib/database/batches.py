"""Delete rows in batches, so that no statement holds locks on very many of them for long."""

from typing import Any

from django.db.models import QuerySet


def delete_batch(rows: QuerySet[Any], *, at_most: int) -> int:
    """Delete up to `at_most` of the rows, with what cascades from them, and return how many.

    Two queries and Django's cascade. A row that another transaction holds is waited for; one that
    another deleted meanwhile still counts, so that 0 means that nothing was found.
    """
    ids = list(rows.values_list("pk", flat=True)[:at_most])
    rows.model._default_manager.filter(pk__in=ids).delete()
    return len(ids)


def delete_in_batches(rows: QuerySet[Any], *, at_most: int) -> None:
    """Delete all of the rows, `at_most` at a time, until a search finds none.

    Outside a transaction each batch is one of its own: its locks last no longer, and what was
    deleted stays so if the worker is lost.
    """
    while delete_batch(rows, at_most=at_most):
        pass
