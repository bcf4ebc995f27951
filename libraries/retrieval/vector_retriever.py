"""Find chunks by the vector of a question, in one of two ways.

Only this module and `vector_index` have SQL over vectors.

Exact: similarities to all chunks of the scope; no cast, so that no index is thought of. By the HNSW
index of the model: the cast, and the model's id as a literal, are what makes the partial index
usable, and a join or subselect for the libraries would lose it. The index goes on until it has
enough chunks of these libraries (`hnsw.iterative_scan`): without that a small tenant gets 1 of 10.

The application chooses, by what each way costs (measured, see docs/retrieval.md): the exact way
costs by the chunks of the scope, the index by how rare these are among all chunks of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from amber.lib.database.plans import with_own_plans
from libraries.embedding.halfvec import halfvec_text
from libraries.embedding.vector_index import rows_indexed
from libraries.retrieval.ranking import VectorResult
from libraries.retrieval.scope import SearchScope, condition_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HITS: Final = 100
EXACT_CHUNKS: Final = 3_000
"""Up to so many chunks an exact scan is as fast as the index can be."""

INDEX_COST: Final = 30
"""A chunk visited in the index costs as much as so many in an exact scan."""

MAX_SCANNED: Final = 40_000
"""`hnsw.max_scan_tuples`: if the index would visit more, an exact scan is made instead."""

FIRST_CHUNKS: Final = 100
"""Chunks taken as a sample until a survey has a better one."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A question's vector for one scope.

    `compared` are chunks that words found. `sample` are some of the scope, whose similarities tell
    the mean and the spread where not all are compared.
    """

    scope: SearchScope
    vector: "NDArray[np.float32]"
    compared: Sequence[UUID] = ()
    sample: Sequence[UUID] = ()
    lift: float | None = None


def prepare_connection() -> None:
    """Set, for this transaction, how the index is walked, and turn off JIT. One query.

    JIT would compile statements that take milliseconds.
    """
    _fetch_rows(_SETTINGS_SQL, [])


def find_by_vector(asked: VectorQuery) -> VectorResult:
    """Find at most HITS chunks, inside a transaction after `prepare_connection`.

    One query for a small scope, two to six for others.
    """
    scope = asked.scope
    if scope.chunk_count <= EXACT_CHUNKS:
        return _compare_all(asked)
    found = _search_index(asked) if is_index_worth_it(scope) else None
    if found is None:
        found = _scan_exactly(asked)
    sample = asked.sample or _first_chunks(scope)
    near = _similarities(asked, [*sample, *asked.compared])
    crowd = [near[pk] for pk in sample if pk in near]
    mean, deviation = (fmean(crowd), pstdev(crowd)) if crowd else (0.0, 0.0)
    others = {pk: near[pk] for pk in asked.compared if pk in near}
    return _build_result(asked, found, others, (scope.chunk_count, mean, deviation))


def is_index_worth_it(scope: SearchScope) -> bool:
    """Estimate whether the index is cheaper than an exact scan; at most one query."""
    if scope.chunk_count <= EXACT_CHUNKS:
        return False
    indexed = rows_indexed(scope.model)
    walked = HITS * indexed / scope.chunk_count
    return indexed > 0 and walked <= MAX_SCANNED and walked * INDEX_COST <= scope.chunk_count


_Hits = list[tuple[UUID, float]]
_Crowd = tuple[int, float, float]
"""Count, mean and deviation of the similarities of all chunks of a scope."""


def _build_result(
    asked: VectorQuery, found: _Hits, others: dict[UUID, float], crowd: _Crowd
) -> VectorResult:
    is_lexical = asked.scope.model.provider.is_offline
    return VectorResult(found, *crowd, others, asked.lift, is_lexical)


def _compare_all(asked: VectorQuery) -> VectorResult:
    condition, values = condition_of(asked.scope)
    sql = _COMPARED_SQL.format(condition=condition, hits=HITS)
    rows = _fetch_rows(sql, [halfvec_text(asked.vector), *values, list(asked.compared)])
    if not rows:
        return VectorResult()
    found = [row[:2] for row in rows if row[2]]
    others = {row[0]: row[1] for row in rows if not row[2]}
    return _build_result(asked, found, others, rows[0][3:])


def _scan_exactly(asked: VectorQuery) -> _Hits:
    condition, values = condition_of(asked.scope)
    vector = halfvec_text(asked.vector)
    return _fetch_rows(_EXACT_SQL.format(condition=condition, hits=HITS), [vector, *values, vector])


def _search_index(asked: VectorQuery) -> _Hits | None:
    """Find chunks by the index; None if it gave up before it had found enough."""
    scope, vector = asked.scope, halfvec_text(asked.vector)
    condition, values = condition_of(scope)
    sql = _NEAREST_SQL.format(
        condition=condition, dimensions=int(scope.model.dimensions), hits=HITS
    )
    _fetch_rows(_NO_SORTING_SQL, ["off"])
    found: _Hits = _fetch_rows(sql, [vector, *values, vector])
    _fetch_rows(_NO_SORTING_SQL, ["on"])
    found.sort(key=lambda hit: -hit[1])  # the index gives them in about this order
    return found if len(found) == HITS else None


def _similarities(asked: VectorQuery, ids: Sequence[UUID]) -> dict[UUID, float]:
    """Return the similarities of those chunks that belong to the scope."""
    condition, values = condition_of(asked.scope)
    sql = _SIMILARITIES_SQL.format(condition=condition)
    return dict(_fetch_rows(sql, [halfvec_text(asked.vector), list(ids), *values]))


def _first_chunks(scope: SearchScope) -> list[UUID]:
    """Return some chunks of the scope, until there is a survey, which samples better."""
    condition, values = condition_of(scope)
    rows = _fetch_rows(_FIRST_SQL.format(condition=condition, sample=FIRST_CHUNKS), values)
    return [row[0] for row in rows]


@with_own_plans()
def _fetch_rows(sql: str, values: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


_COMPARED_SQL: Final = """
WITH compared AS MATERIALIZED (
    SELECT id, 1 - (vector <=> %s::halfvec) AS near FROM libraries_documentchunk WHERE {condition}
), crowd AS (
    SELECT count(*) AS count, avg(near) AS mean, stddev_pop(near) AS deviation FROM compared
), nearest AS (
    SELECT id, near FROM compared ORDER BY near DESC LIMIT {hits}
)
SELECT id, near, true, crowd.* FROM nearest, crowd
UNION ALL SELECT id, near, false, crowd.* FROM compared, crowd WHERE id = ANY(%s)
"""

_EXACT_SQL: Final = """
SELECT id, 1 - (vector <=> %s::halfvec) FROM libraries_documentchunk
WHERE {condition} ORDER BY vector <=> %s::halfvec LIMIT {hits}
"""

# `scan_mem_multiplier`: in pgvector's own `work_mem` a walk may end long before MAX_SCANNED.
_SETTINGS_SQL: Final = f"""
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', '{HITS}', true),
    set_config('hnsw.max_scan_tuples', '{MAX_SCANNED}', true),
    set_config('hnsw.scan_mem_multiplier', '4', true),
    set_config('jit', 'off', true)
"""

# Not to sort is what makes the planner take the index for a scope of any size.
_NO_SORTING_SQL: Final = "SELECT set_config('enable_sort', %s, true)"

_NEAREST_SQL: Final = """
SELECT id, 1 - (vector::halfvec({dimensions}) <=> %s) FROM libraries_documentchunk
WHERE {condition} ORDER BY vector::halfvec({dimensions}) <=> %s LIMIT {hits}
"""

_SIMILARITIES_SQL: Final = """
SELECT id, 1 - (vector <=> %s::halfvec) FROM libraries_documentchunk
WHERE id = ANY(%s) AND {condition}
"""

_FIRST_SQL: Final = """
SELECT id FROM libraries_documentchunk WHERE {condition} LIMIT {sample}
"""
