"""Measure how well libraries are searched, from upload to passages: recall, MRR, nDCG.

Sets have any form that `libraries.retrieval.question_sets` reads. Beside Amber's search stand, of the
same run: plain BM25 (the same tokens, no stems, all words alike), Amber's words alone, its vectors
alone, and both added by reciprocal ranks with equal weights (RRF, k 60).

It works in this process, on the database of the settings, which it fills: use one made for it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final
from uuid import uuid4

RRF_K: Final = 60
K1, B = 1.2, 0.75

LANGUAGES: Final = Path(__file__).with_name("languages")
"""62 facts in each of German, Spanish, Russian and Arabic, and a question to each in other forms of its
words. Written for this measure, in sentences of a few dozen words: what they tell is whether forms of a
word find each other, not how hard questions are that people ask."""

Rows = dict[str, dict[str, Any]]


def measure_sets(sets: Mapping[str, Any], *, is_mixed: bool, is_random: bool = False) -> Rows:
    """Measure each set in a library of its own, or all in one; return figures by set and way.

    `is_random` puts random vectors in the place of the embedder's: no ranking may suffer by it.
    """
    named = {name: _with_prefix(name, each) for name, each in sets.items()}
    if not is_mixed:
        return {name: _measure([each], is_random=is_random)[0] for name, each in named.items()}
    measured = _measure(list(named.values()), is_random=is_random)
    return dict(zip(named, measured, strict=True))


def _with_prefix(name: str, questions: Any) -> Any:
    """Let no two sets have documents of the same path."""
    return replace(
        questions,
        documents=[replace(each, path=f"{name}/{each.path}") for each in questions.documents],
        questions=[
            replace(each, grades={f"{name}/{path}": grade for path, grade in each.grades.items()})
            for each in questions.questions
        ],
    )


def _measure(sets: Sequence[Any], *, is_random: bool) -> list[dict[str, Any]]:
    """Put all documents into one library; ask each set's questions there."""
    from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
    from libraries.retrieval.evaluation import evaluate

    documents = [document for each in sets for document in each.documents]
    with across_tenants():
        library = fill_library(documents, is_random=is_random)
    plain = PlainBM25({each.path: each.text for each in documents})
    found = []
    with as_tenant(Tenant(library.organization_id, is_whole=True)):
        for each in sets:
            ways = {
                "words": evaluate(library, each.questions, retrievers=("words",)),
                "vectors": evaluate(library, each.questions, retrievers=("vectors",)),
            }
            ways["RRF"] = _added_by_rank(ways["words"], ways["vectors"])
            ways["BM25"] = [
                replace(outcome, found=plain.search(outcome.question)) for outcome in ways["words"]
            ]
            ways["Amber"] = evaluate(library, each.questions)
            found.append({name: _figures(outcomes) for name, outcomes in ways.items()})
    return found


def fill_library(documents: Sequence[Any], *, is_random: bool = False, **fields: Any) -> Any:
    """Make a library of an organization of its own, and index the documents as an upload would be."""
    from accounts.models import Organization
    from libraries.management.commands.evaluate_library import load
    from libraries.models import Library
    from libraries.retrieval.question_sets import QuestionSet
    from libraries.retrieval.survey import survey

    slug = f"quality-{uuid4().hex}"
    library = Library.objects.create(
        organization=Organization.objects.create(name=slug, slug=slug),
        name="Quality",
        embedding_model=_embedding_model(),
        **fields,
    )
    load(library, QuestionSet([], list(documents)))
    if is_random:
        _scatter_vectors(library)
    library.refresh_from_db()
    survey(library)
    return library


def _embedding_model() -> Any:
    """Return the default embedding model of this database, or the built-in one."""
    from amber.lib.errors import Unavailable
    from providers.models import EmbeddingModel, Provider
    from providers.registry import default_embedding_model

    try:
        return default_embedding_model()
    except Unavailable:
        provider = Provider.objects.create(name="Built in", base_url="offline:")
        return EmbeddingModel.objects.create(
            provider=provider, alias="built-in", upstream_id="offline", dimensions=512
        )


def _scatter_vectors(library: Any) -> None:
    import numpy as np
    from django.db import connection

    from libraries.embedding.halfvec import halfvec_text
    from libraries.models import DocumentChunk

    ids = list(DocumentChunk.objects.filter(library=library).values_list("pk", flat=True))
    size = (len(ids), library.embedding_model.dimensions)
    vectors = np.random.default_rng(1).normal(size=size)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE libraries_documentchunk SET vector = %s::halfvec WHERE id = %s",
            [(halfvec_text(vector), pk) for pk, vector in zip(ids, vectors, strict=True)],
        )


def _figures(outcomes: Sequence[Any]) -> dict[str, Any]:
    from libraries.retrieval.evaluation import summary
    from libraries.retrieval.search import MIN_RELEVANCE

    said = summary(outcomes)
    shown = fmean(each.best_relevance >= MIN_RELEVANCE for each in outcomes)
    return {
        "questions": said.questions,
        **{f"recall@{depth}": value for depth, value in said.recall.items()},
        "MRR": round(said.mrr, 3),
        "nDCG@10": round(100 * said.ndcg_10, 1),
        "shown to models": round(100 * shown, 1),
    }


def _added_by_rank(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    from engine.relevance.fusion import reciprocal_ranks

    added = []
    for first, second in zip(one, other, strict=True):
        scores = reciprocal_ranks([(first.found, 1.0), (second.found, 1.0)], k=RRF_K)
        added.append(replace(first, found=sorted(scores, key=lambda each: -scores[each])))
    return added


class PlainBM25:
    """The textbook's BM25 over whole documents, by the same tokens, without stems or stop words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        from amber.lib.search.words import stored_words

        self._counts = {path: Counter(stored_words(text)) for path, text in texts.items()}
        self._lengths = {path: counts.total() for path, counts in self._counts.items()}
        self._mean = fmean(self._lengths.values())
        self._having: dict[str, list[str]] = defaultdict(list)
        for path, counts in self._counts.items():
            for word in counts:
                self._having[word].append(path)

    def search(self, question: str) -> list[str]:
        """Return the paths of all documents that have a word of the question, best first."""
        from amber.lib.search.words import asked_words

        scores: dict[str, float] = defaultdict(float)
        for word in asked_words(question):
            paths = self._having.get(word, [])
            idf = math.log(1 + (len(self._counts) - len(paths) + 0.5) / (len(paths) + 0.5))
            for path in paths:
                occurs = self._counts[path][word]
                damping = K1 * (1 - B + B * self._lengths[path] / self._mean)
                scores[path] += idf * occurs * (K1 + 1) / (occurs + damping)
        return sorted(scores, key=lambda path: (-scores[path], path))


def own_sets() -> dict[str, Any]:
    """Return the sets that lie beside this module, by language."""
    from libraries.retrieval.question_sets import read_question_set

    return {path.stem: read_question_set(path) for path in sorted(LANGUAGES.glob("*.json"))}


def table(rows: Rows, columns: Iterable[str]) -> str:
    """Return a Markdown table of the rows; columns that a row lacks are empty."""
    heads = ["set", "way", *columns]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, ways in rows.items():
        for way, figures in ways.items():
            cells = [name, way, *(str(figures.get(column, "")) for column in heads[2:])]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
