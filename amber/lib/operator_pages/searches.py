"""Search large tables by what names a row: ids, and the rows that an email or a short name stands for.

Django compares the columns of all tables at once, ids as text: no index answers that, and each search would
read a whole table (measured with 490,000 turns: 25,000 pages). Here a word is looked up first: an id in its
column, an email or short name in the table that has it. Only a word that names nothing is looked for in texts,
which reads the whole table.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, Q, QuerySet, UUIDField
from django.db.models.functions import Lower

MAX_NAMED: Final = 100
"""Rows of another table that one word may stand for."""


def search_rows(rows: QuerySet[Any], fields: Sequence[str], term: str) -> QuerySet[Any]:
    """Return the rows in which each word of the term is found. One query for each table that is referred to."""
    for word in term.split():
        rows = rows.filter(_naming(rows.model, fields, word) or _holding(rows.model, fields, word))
    return rows


def _naming(model: type[Model], fields: Sequence[str], word: str) -> Q:
    """Return the condition of what the word names; empty if it names nothing."""
    found = Q()
    for path in fields:
        for condition in _conditions(model, path, word):
            found |= condition
    return found


def _conditions(model: type[Model], path: str, word: str) -> Iterator[Q]:
    relation, _, name = path.removeprefix("=").rpartition("__")
    field = _field_of(model, path)
    if _is_id(field):
        if wanted := _as_id(word):
            yield Q(**{relation or name: wanted})
    elif relation and path.startswith("=") and (named := _find_named(field.model, name, word)):
        yield Q(**{f"{relation}__in": named})


def _holding(model: type[Model], fields: Sequence[str], word: str) -> Q:
    """Return the condition of texts that hold the word, or are it."""
    found = Q()
    for path in fields:
        name = path.removeprefix("=")
        if not _is_id(_field_of(model, path)):
            found |= Q(**{f"{name}__{'icontains' if name == path else 'iexact'}": word})
    return found or Q(pk__in=[])


def _find_named(model: type[Model], name: str, word: str) -> list[Any]:
    rows = model._base_manager.annotate(searched=Lower(name)).filter(searched=word.lower())
    return list(rows.values_list("pk", flat=True)[:MAX_NAMED])


def _field_of(model: type[Model], path: str) -> Any:
    *relations, name = path.removeprefix("=").split("__")
    field: Any
    for relation in relations:
        field = model._meta.get_field(relation)
        model = field.related_model
    return model._meta.get_field(name)


def _is_id(field: Any) -> bool:
    return isinstance(field.target_field if field.is_relation else field, UUIDField)


def _as_id(word: str) -> UUID | None:
    try:
        return UUID(word)
    except ValueError:
        return None
