"""Measure how well search finds what it should in a library: recall, MRR, nDCG and latency.

Documents are counted: a document's place is that of its first passage. Recall@k is the share of a
question's documents among the first k; MRR is 1 / the place of the first; nDCG@10 is as in
https://en.wikipedia.org/wiki/Discounted_cumulative_gain, with gains 2^grade - 1. Each is the mean
over the questions. The latency is that of `search` as callers see it, with the question's
embedding.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from libraries.models import Document, Library
from libraries.retrieval.question_sets import JudgedQuestion, QuestionSetError
from libraries.retrieval.search import BOTH_RETRIEVERS, MAX_K, SearchResult, search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTHS: Final = (1, 5, 10)
PASSAGES: Final = MAX_K
"""How many passages are asked for, so that they come from enough documents."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """What search found for one question.

    `found` are the documents by the set's names for them, best first.
    """

    question: str
    grades: Mapping[str, float]
    found: Sequence[str]
    latency_ms: float
    best_relevance: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The means over all questions: `recall` by depth in percent, `mrr` and `ndcg_10` 0 to 1."""

    questions: int
    recall: dict[int, float]
    mrr: float
    ndcg_10: float
    latency_ms_median: float
    latency_ms_p95: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"recall": {str(k): value for k, value in self.recall.items()}}


def evaluate(
    library: Library,
    questions: Sequence[JudgedQuestion],
    *,
    retrievers: Collection[str] = BOTH_RETRIEVERS,
    embed: "Callable[[str], NDArray[np.float32]] | None" = None,
) -> list[EvaluationResult]:
    """Ask all questions, in order; `embed` takes the place of the library's embedder, if given.

    A document that the library does not have counts as not found. Raises QuestionSetError if it has
    none of them.
    """
    names = _names(library, questions)
    outcomes = []
    for question in questions:
        began = time.perf_counter()
        known = {library.embedding_model_id: embed(question.text)} if embed else None
        found = search(
            [library], question.text, k=PASSAGES, retrievers=retrievers, query_vectors=known
        )
        latency_ms = (time.perf_counter() - began) * 1_000
        best = max((passage.relevance for passage in found.passages), default=0.0)
        documents = _documents(found, names)
        outcomes.append(
            EvaluationResult(question.text, question.grades, documents, latency_ms, best)
        )
    return outcomes


def summary(outcomes: Sequence[EvaluationResult]) -> Evaluation:
    """Return the means over at least one outcome."""
    latencies = sorted(outcome.latency_ms for outcome in outcomes)
    return Evaluation(
        questions=len(outcomes),
        recall={
            depth: round(100 * fmean(recall(each, depth) for each in outcomes), 1)
            for depth in DEPTHS
        },
        mrr=round(fmean(reciprocal_rank(each) for each in outcomes), 4),
        ndcg_10=round(fmean(ndcg(each, 10) for each in outcomes), 4),
        latency_ms_median=round(median(latencies), 1),
        latency_ms_p95=round(quantiles(latencies, n=20)[-1] if latencies[1:] else latencies[0], 1),
    )


def recall(outcome: EvaluationResult, depth: int) -> float:
    return len(set(outcome.found[:depth]) & set(outcome.grades)) / len(outcome.grades)


def reciprocal_rank(outcome: EvaluationResult) -> float:
    places = (place for place, name in enumerate(outcome.found, 1) if name in outcome.grades)
    return 1 / next(places, math.inf)


def ndcg(outcome: EvaluationResult, depth: int) -> float:
    grades = outcome.grades
    best = sorted(grades.values(), reverse=True)
    return _gain([grades.get(name, 0.0) for name in outcome.found[:depth]]) / _gain(best[:depth])


def _gain(grades: Iterable[float]) -> float:
    return sum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _documents(found: SearchResult, names: Mapping[UUID, str]) -> list[str]:
    """Return each document once, in the order of first passages, and those of one name as one: else
    more would be found than the set names.

    Documents that the set does not name are named by their ids.
    """
    ids = (passage.document.id for passage in found.passages)
    return list(dict.fromkeys(names.get(pk, str(pk)) for pk in ids))


def _names(library: Library, questions: Sequence[JudgedQuestion]) -> dict[UUID, str]:
    """Return the set's own name for each document of the library that it names by id, path or name."""
    wanted = {name for question in questions for name in question.grades}
    names: dict[UUID, str] = {}
    rows = Document.objects.filter(library=library).values_list("pk", "path", "name")
    for pk, path, name in rows:
        said = next((each for each in (str(pk), path, name) if each in wanted), None)
        if said is not None:
            names[pk] = said
    if not names:
        raise QuestionSetError("The library has none of the documents the questions name.")
    return names
