"""Build a queryset's SQL only once: most of a small query's CPU goes into building it anew.

    @cache_sql
    def _newest(count: int, /, *, chat_id: UUID) -> QuerySet[Message]:
        return Message.objects.filter(chat=chat_id).order_by("-position")[:count]

    rows = _newest(20, chat_id=chat.pk)      # a list

Keyword arguments are values, given to the database with each call; positional ones shape the
statement, which is built once for each combination of them: let there be few. For queries that
every turn makes: 0.1 ms of CPU instead of 0.3, and 0.4 instead of 1.7 for a row with five others
joined. Elsewhere a queryset is clear enough. `raw_rows` does the same for SQL that is written by
hand.

Refuses values that do not stand in the statement as they were given (a limit, NULL), and
prefetches. What the function computes by itself, the time for instance, is computed once.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_type_hints

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, QuerySet
from django.db.models.base import ModelState
from django.db.models.query import ModelIterable, ValuesListIterable, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")
Made = TypeVar("Made", bound=Model)
DbRow = Sequence[Any]

_STAND_INS: dict[type, Callable[[int], Any]] = {
    uuid.UUID: lambda number: uuid.UUID(int=(0xA3BE << 112) + number),
    int: lambda number: 1_913_000_000 + number,
    str: lambda number: f"\ue000{number}",
}
"""Stand-ins for arguments of each type while the statement is built, unlike any real value."""


def cache_sql(
    build: Callable[Arguments, "QuerySet[Any, Found]"],
) -> "CachedSql[Arguments, Found]":
    return CachedSql(build)


class CachedSql(Generic[Arguments, Found]):
    """A function that builds a queryset, wrapped: a call returns the rows."""

    def __init__(self, build: Callable[Arguments, "QuerySet[Any, Found]"]) -> None:
        self._build: Callable[..., QuerySet[Any, Found]] = build
        self._statements: dict[tuple[Any, ...], CachedStatement] = {}
        update_wrapper(self, build)

    def statement(self, *shape: Arguments.args, **values: Arguments.kwargs) -> "CachedStatement":
        """Return the statement, to be part of another query. Of the values only the names matter."""
        statement = self._statements.get(shape)
        if statement is None:
            statement = self._statements[shape] = _statement(self._build, shape, values)
        return statement

    def __call__(self, *shape: Arguments.args, **values: Arguments.kwargs) -> list[Found]:
        """Return the rows, in one query."""
        statement = self.statement(*shape, **values)
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, statement.params(values))
            return cast(list[Found], statement.rows(cursor.fetchall()))


def raw_rows(model: type[Made], sql: str, params: Any) -> list[Made]:
    """Return rows as `Manager.raw` does: columns left out are read when they are asked for.

    Takes 3 µs a row instead of 20.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        names = tuple(column.name for column in cursor.description)
        fields, converters = _of_columns(model, names)
        return [_row(model, fields, _convert_row(row, converters)) for row in cursor.fetchall()]


@cache
def _of_columns(
    model: type[Model], columns: tuple[str, ...]
) -> tuple[Sequence[str], Sequence["_Converters"]]:
    fields = {field.column: field for field in model._meta.concrete_fields}
    converters = [
        (place, each, fields[name].get_col(model._meta.db_table))
        for place, name in enumerate(columns)
        if (each := fields[name].get_db_converters(connection))
    ]
    return [fields[name].attname for name in columns], converters


def _row(model: type[Made], fields: Sequence[str], values: DbRow) -> Made:
    """Make a row as `Model.from_db` does, without `__init__` and its signals, which stored rows
    do not need."""
    row = model.__new__(model)
    row._state = ModelState()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    row.__dict__.update(zip(fields, values, strict=True))
    return row


_Converters = tuple[int, Sequence[Callable[..., Any]], Any]
"""The column's place, its converters to Python, and the expression that they take."""


def _convert_row(fetched: DbRow, converters: Sequence[_Converters]) -> DbRow:
    row = list(fetched)
    for column, each, expression in converters:
        if row[column] is None:  # to all of Django's converters of fields, too
            continue
        for convert in each:
            row[column] = convert(row[column], expression, connection)
    return row


@dataclass(frozen=True, slots=True)
class CachedStatement:
    """A built statement: `places` are the parameters that a call fills in; the rest is constant."""

    sql: str
    constants: Sequence[Any]
    places: Sequence[tuple[int, str]]
    converters: Sequence[_Converters]
    made_of: Callable[[DbRow], Any]

    def params(self, values: dict[str, Any]) -> list[Any]:
        params = list(self.constants)
        for place, name in self.places:
            params[place] = values[name]
        return params

    def rows(self, fetched: Iterable[DbRow]) -> list[Any]:
        return [self.made_of(_convert_row(row, self.converters)) for row in fetched]


def _statement(
    build: Callable[..., "QuerySet[Any, Any]"], shape: tuple[Any, ...], names: Iterable[str]
) -> CachedStatement:
    types = get_type_hints(build)
    stand_ins = {name: _STAND_INS[types[name]](number) for number, name in enumerate(names)}
    queryset = build(*shape, **stand_ins)
    compiler = queryset.query.get_compiler(using=DEFAULT_DB_ALIAS)
    sql, params = compiler.as_sql()
    places = [(n, name) for n, param in enumerate(params) for name in _meant(param, stand_ins)]
    if lost := stand_ins.keys() - {name for _, name in places}:
        raise TypeError(f"Not in the statement as they were given: {', '.join(sorted(lost))}.")
    expressions = [selected[0] for selected in compiler.select]
    converters = compiler.get_converters(expressions).items()
    return CachedStatement(
        sql=sql,
        constants=params,
        places=places,
        converters=[(column, each, expression) for column, (each, expression) in converters],
        made_of=_maker(queryset, compiler),
    )


def _meant(param: Any, stand_ins: dict[str, Any]) -> list[str]:
    return [name for name, each in stand_ins.items() if type(param) is type(each) and param == each]


def _maker(queryset: Any, compiler: SQLCompiler) -> Callable[[DbRow], Any]:
    """Return a function that makes of a row what the queryset would. Raises TypeError."""
    form = queryset._iterable_class
    if queryset._prefetch_related_lookups or compiler.has_extra_select:
        raise TypeError("Prefetches and columns that only order cannot be cached.")
    if form is ValuesListIterable:
        return tuple
    if form is not ModelIterable:
        raise TypeError("Only rows of a model and lists of values can be cached.")
    return _model_maker(compiler)


def _model_maker(compiler: SQLCompiler) -> Callable[[DbRow], Any]:
    """Make rows as `django.db.models.query.ModelIterable` does, with select_related and
    annotations."""
    about = compiler.klass_info
    assert about is not None
    columns = about["select_fields"]
    first, behind = columns[0], columns[-1] + 1
    names = [selected[0].target.attname for selected in compiler.select[first:behind]]
    populators = get_related_populators(about, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # stubs of 6.0

    annotations = tuple((compiler.annotation_col_map or {}).items())

    def make(row: DbRow) -> Any:
        made = _row(about["model"], names, row[first:behind])
        for name, column in annotations:
            setattr(made, name, row[column])
        for populator in populators:
            populator.populate(row, made)
        return made

    return make
