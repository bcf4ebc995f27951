"""What the vector of a question finds, by one of two ways; together with `vector_index` the only
SQL over vectors.

Exact: similarities to all chunks of the scope; no cast, so that no index is thought of. By the HNSW
index of the model: the cast, and the model's id as a literal, are what makes the partial index
usable, and a join or subselect for the libraries would lose it. The index goes on until it has
enough chunks of these libraries (`hnsw.iterative_scan`): without that a small tenant gets 1 of 10.

The application chooses, by what each way costs (measured, see docs/retrieval.md): the exact way
costs by the chunks of the scope, the index by how rare these are among all chunks of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection, transaction

from libraries.halfvec import halfvec_text
from libraries.ranking import VectorArm
from libraries.scope import Scope, condition_of
from libraries.vector_index import rows_indexed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HITS: Final = 100
EXACT_CHUNKS: Final = 3_000
"""Up to so many an exact scan is as fast as the index can be."""

INDEX_COST: Final = 15
"""A chunk the index walks past costs as much as so many in an exact scan."""

MAX_SCANNED: Final = 40_000
"""`hnsw.max_scan_tuples`: an exact scan takes over where the index has to walk further."""

FIRST_CHUNKS: Final = 100
"""Taken for a sample until a survey has taken a better one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's vector for one scope. `compared` are chunks that words found, `sample` some of
    the scope, whose similarities tell the mean and the spread where not all are compared.
    """

    scope: Scope
    vector: "NDArray[np.float32]"
    compared: Sequence[UUID] = ()
    sample: Sequence[UUID] = ()
    lift: float | None = None


def find_by_vector(asked: Asked) -> VectorArm:
    """At most HITS. One query the exact way, up to four by the index."""
    arm = _by_index(asked) if is_index_worth_it(asked.scope) else None
    return arm or _exactly(asked)


def is_index_worth_it(scope: Scope) -> bool:
    """At most one query, of the catalogue."""
    if scope.chunk_count <= EXACT_CHUNKS:
        return False
    indexed = rows_indexed(scope.model)
    walked = HITS * indexed / scope.chunk_count
    return indexed > 0 and walked <= MAX_SCANNED and walked * INDEX_COST <= scope.chunk_count


def _exactly(asked: Asked) -> VectorArm:
    condition, values = condition_of(asked.scope)
    rows = _fetched(
        _EXACT.format(condition=condition, hits=HITS),
        [halfvec_text(asked.vector), *values, list(asked.compared)],
    )
    if not rows:
        return VectorArm()
    found = [row[:2] for row in rows if row[2] <= HITS]
    compared = set(asked.compared)
    others = {row[0]: row[1] for row in rows if row[0] in compared}
    return _arm(asked, found, others, mean=rows[0][3], deviation=rows[0][4])


def _by_index(asked: Asked) -> VectorArm | None:
    """None if the index did not find as many as there are."""
    scope, vector = asked.scope, halfvec_text(asked.vector)
    condition, values = condition_of(scope)
    sql = _NEAREST.format(condition=condition, dimensions=int(scope.model.dimensions), hits=HITS)
    with transaction.atomic():
        _fetched(_SETTINGS, [])
        found = _fetched(sql, [vector, *values, vector])
    if len(found) < HITS:
        return None
    found.sort(key=lambda hit: -hit[1])
    sample = asked.sample or _first_chunks(scope)
    near = dict(_fetched(_SIMILARITIES, [vector, [*sample, *asked.compared], scope.model.pk]))
    crowd = [near[pk] for pk in sample if pk in near]
    others = {pk: near[pk] for pk in asked.compared if pk in near}
    mean = sum(crowd) / len(crowd) if crowd else 0.0
    variance = sum((each - mean) ** 2 for each in crowd) / len(crowd) if crowd else 0.0
    return _arm(asked, found, others, mean=mean, deviation=variance**0.5)


def _arm(
    asked: Asked,
    found: Sequence[tuple[UUID, float]],
    others: dict[UUID, float],
    *,
    mean: float,
    deviation: float,
) -> VectorArm:
    is_lexical = asked.scope.model.provider.is_offline
    return VectorArm(found, mean, deviation, others, asked.lift, is_lexical)


def _first_chunks(scope: Scope) -> list[UUID]:
    """Until there is a survey, which samples better."""
    condition, values = condition_of(scope)
    rows = _fetched(_FIRST.format(condition=condition, sample=FIRST_CHUNKS), values)
    return [row[0] for row in rows]


def _fetched(sql: str, values: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


_EXACT: Final = """
SELECT id, near, place, mean, deviation FROM (
    SELECT id, near, row_number() OVER (ORDER BY near DESC, id) AS place,
        avg(near) OVER () AS mean, stddev_pop(near) OVER () AS deviation
    FROM (
        SELECT id, 1 - (vector <=> %s::halfvec) AS near FROM libraries_documentchunk
        WHERE {condition}
    ) compared
) placed WHERE place <= {hits} OR id = ANY(%s) ORDER BY place
"""

# Not sorting is what makes the planner take the index for a scope of any size.
_SETTINGS: Final = f"""
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', '{HITS}', true),
    set_config('hnsw.max_scan_tuples', '{MAX_SCANNED}', true),
    set_config('hnsw.scan_mem_multiplier', '4', true),
    set_config('enable_sort', 'off', true)
"""

_NEAREST: Final = """
SELECT id, 1 - (vector::halfvec({dimensions}) <=> %s) FROM libraries_documentchunk
WHERE {condition} ORDER BY vector::halfvec({dimensions}) <=> %s LIMIT {hits}
"""

_SIMILARITIES: Final = """
SELECT id, 1 - (vector <=> %s::halfvec) FROM libraries_documentchunk
WHERE id = ANY(%s) AND embedding_model_id = %s
"""

_FIRST: Final = """
SELECT id FROM libraries_documentchunk WHERE {condition} LIMIT {sample}
"""
