"""Measure how far a library's vectors mean anything, script by script, from a sample of its chunks.

Chunks that share rare words are mostly about the same; if the vectors are any good for a script,
such chunks lie nearer to each other than others do. The *lift* is how much nearer, where 1 is as
near as any pairs lie: random vectors 0.0, an English embedder on Chinese about 0.4, embedders that
know the script 0.7 to 1. It needs no provider call and no questions. Search takes it as the prior
of a vector retriever (`libraries.retrieval.ranking`), and the sample as a crowd to compare
similarities with.

`survey_libraries` is a periodic job: a library is surveyed again when it has grown by half, shrunk
by half, or changed its model.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import orjson
import regex  # type: ignore[import-untyped]
from django.db import connection
from django.db.models import F, Q

from libraries.embedding.halfvec import vector_of
from libraries.models import Library, VectorSurvey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SAMPLE: Final = 120
"""The chunks of a sample: with their 7,140 pairs, random vectors show a lift of at most 0.1."""

LEAST: Final = 20
"""Least chunks of one script; fewer tell nothing."""

NEAREST_SHARE: Final = 50
"""One pair in so many counts as sharing most."""

AT_ONCE: Final = 50


def survey_libraries() -> None:
    """Survey libraries that changed much since their last survey, at most AT_ONCE a call."""
    changed = (
        Q(survey=None)
        | ~Q(survey__embedding_model=F("embedding_model"))
        | Q(chunk_count__gt=F("survey__chunk_count") * 3 / 2)
        | Q(chunk_count__lt=F("survey__chunk_count") / 2)
    )
    rows = Library.objects.filter(changed, deleted_at=None, chunk_count__gte=LEAST)
    for library in rows.order_by("updated_at")[:AT_ONCE]:
        survey(library)


def survey(library: Library) -> VectorSurvey:
    """Survey a sample of the library's chunks now and store the result. Three queries."""
    rows = _sample_rows(library)
    by_script = defaultdict(list)
    for row in rows:
        by_script[script_of(row[1])].append(row)
    lifts = {
        script: round(lift([row[2] for row in members], [vector_of(row[3]) for row in members]), 3)
        for script, members in by_script.items()
        if len(members) >= LEAST
    }
    found, _ = VectorSurvey.objects.update_or_create(
        library=library,
        defaults={
            "organization_id": library.organization_id,
            "embedding_model_id": library.embedding_model_id,
            "chunk_count": library.chunk_count,
            "lifts": lifts,
            "sample": [row[0] for row in rows],
        },
    )
    return found


class SurveyResult(NamedTuple):
    """The part of a survey that search uses."""

    lifts: Mapping[str, float]
    sample: Sequence[UUID]


def surveys_of(library_ids: Sequence[UUID], model_id: UUID) -> list[SurveyResult]:
    """Return the libraries' surveys of the model they are searched by now. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_SURVEYED_SQL, [list(library_ids), model_id])
        return [SurveyResult(orjson.loads(lifts), sample) for lifts, sample in cursor.fetchall()]


_SURVEYED_SQL: Final = """
SELECT lifts::text, sample FROM libraries_vectorsurvey
WHERE library_id = ANY(%s) AND embedding_model_id = %s
"""


def lift_of(surveys: Iterable[SurveyResult], query: str) -> float | None:
    """Return the mean lift for this question's script, or of all scripts if none has that one.

    None means that no library was surveyed yet.
    """
    script = script_of(query)
    known = [each.lifts for each in surveys if each.lifts]
    matching = [lifts[script] for lifts in known if script in lifts]
    lifts = matching or [lift for each in known for lift in each.values()]
    return sum(lifts) / len(lifts) if lifts else None


def lift(words: Sequence[Sequence[str]], vectors: "Sequence[NDArray[np.float32]]") -> float:
    """Return 0 if chunks that share words lie no nearer than others, 1 if as near as any. O(n²)."""
    import numpy as np

    apart = np.triu_indices(len(words), 1)
    shared = _word_cosines(words)
    stacked = np.stack(vectors)
    near = (stacked @ stacked.T)[apart]
    count = max(LEAST // 2, len(near) // NEAREST_SHARE)
    sharing = np.argsort(-shared[apart], kind="stable")[:count]
    most = float(np.sort(near)[-count:].mean() - near.mean())
    return float(near[sharing].mean() - near.mean()) / most if most > 0 else 0.0


def _word_cosines(words: Sequence[Sequence[str]]) -> "NDArray[np.float32]":
    """Return the cosines of the chunks by their words, weighed by rarity."""
    import numpy as np

    having: Mapping[str, int] = Counter(word for each in words for word in set(each))
    places = {word: place for place, word in enumerate(w for w, n in having.items() if n > 1)}
    table = np.zeros((len(words), max(1, len(places))), np.float32)
    for row, each in enumerate(words):
        for word in each:
            if word in places:
                table[row, places[word]] = math.log(len(words) / having[word])
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    table /= np.where(norms > 0, norms, 1)
    product: NDArray[np.float32] = table @ table.T
    return product


_Row = tuple[UUID, str, list[str], bytes]

# By a hash of the ids, which by themselves go by time: the first would be the oldest.
_SAMPLED_SQL: Final = """
SELECT id, content, tsvector_to_array(search), halfvec_send(vector) FROM libraries_documentchunk
WHERE library_id = %s AND embedding_model_id = %s ORDER BY md5(id::text) LIMIT %s
"""


def _sample_rows(library: Library) -> list[_Row]:
    """Sample chunks; the same ones each time, while the library has the same chunks."""
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLED_SQL, [library.pk, library.embedding_model_id, SAMPLE])
        return list(cursor.fetchall())


# -- Scripts, as Unicode names them (UAX #24); those that one language mixes are one here -------------

_SCRIPTS: Final = {
    "latin": "Latin",
    "east_asian": "Han,Hiragana,Katakana,Hangul,Bopomofo",
    "cyrillic": "Cyrillic",
    "greek": "Greek",
    "arabic": "Arabic",
    "hebrew": "Hebrew",
    "devanagari": "Devanagari",
    "thai": "Thai",
}
OTHER: Final = "other"
LOOKED_AT_CHARS: Final = 2_000
"""Enough to tell, and bounded."""

_EACH: Final = {
    name: regex.compile("[" + "".join(rf"\p{{Script={s}}}" for s in scripts.split(",")) + "]")
    for name, scripts in _SCRIPTS.items()
}
_LATIN_SHARE: Final = 4
"""So many Latin letters say about as much as one character of Chinese: a word against a word."""


def script_of(text: str) -> str:
    """Return the name of the script, or "other".

    A few names in Latin letters do not make a Chinese text Latin.
    """
    looked_at = text[:LOOKED_AT_CHARS]
    counts = {name: len(pattern.findall(looked_at)) for name, pattern in _EACH.items()}
    counts["latin"] = -(-counts["latin"] // _LATIN_SHARE)
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else OTHER
