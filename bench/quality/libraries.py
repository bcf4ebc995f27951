"""Measure search in libraries, from upload to passages: which documents, and which text.

Documents are indexed as uploads are, in throw-away organizations; questions go through the real search.
Beside it stand, of the same run: plain BM25 over whole documents (the same tokens, no stems, all words
alike), Amber's words alone, the vectors alone, and both by reciprocal ranks with equal weights. The
embedder is the built-in one, the stand-in, or random vectors: no ranking may suffer by it.

Of the text that is found the first five passages are compared with the excerpts that answer, by
characters, as Chroma does: https://research.trychroma.com/evaluating-chunking.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from django.db import connection, transaction

from accounts.models import Organization
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.ids import new_id
from amber.lib.search.words import asked_words, stored_words
from bench.loadgen import say
from bench.quality.embedders import DIMENSIONS, StandInEmbedder
from bench.quality.excerpts import (
    ExcerptSet,
    about_collection,
    about_documents,
    about_python,
    from_squad,
    read_chroma,
)
from bench.quality.options import QualityOptions
from bench.quality.plain import USUAL_K, PlainBM25, best_first
from bench.quality.tables import Table
from engine.relevance.fusion import reciprocal_ranks
from engine.text import tokens
from libraries.embedding.halfvec import halfvec_text
from libraries.management.commands.evaluate_library import load
from libraries.models import DocumentChunk, Library
from libraries.retrieval.evaluation import EvaluationResult, evaluate, summary
from libraries.retrieval.passages import Passage
from libraries.retrieval.question_sets import QuestionSet, SetDocument, read_question_set
from libraries.retrieval.search import MIN_RELEVANCE, search
from libraries.retrieval.survey import survey
from providers.models import EmbeddingModel, Provider

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embed = Callable[[str], NDArray[np.float32]]

LANGUAGES: Final = Path(__file__).with_name("languages")
"""62 facts in each of German, Spanish, Russian and Arabic, and a question to each in other forms of its
words. They tell whether forms of a word find each other, not how hard questions are that people ask."""

EMBEDDERS: Final = ("built-in", "stand-in", "random")
QUICK, FEW = 4, 100
"""In a hurry every so manieth question of a set is asked that has more than a few."""
CHUNKINGS: Final = ((400, 40), (200, 40), (200, 20), (100, 0))
SHOWN: Final = 5
"""Passages asked for, as Chroma does."""
OF_A_TURN: Final = 12
"""The most passages that a turn asks for (`chats.context.knowledge`)."""


def measure(options: QualityOptions) -> list[Table]:
    """Return tables of documents found, alone and in one library, and of text found."""
    every = QUICK if options.quick else 1
    excerpts = {"about Python": about_python(), "these documents": about_documents()}
    excerpts |= {path.stem: about_collection(path) for path in options.sets if path.is_dir()}
    excerpts |= {path.stem: from_squad(path) for path in options.sets if path.suffix == ".json"}
    excerpts |= {path.stem: read_chroma(path) for path in options.chroma}
    tables = [
        _text_table(name, replace(each, questions=each.questions[::every]))
        for name, each in excerpts.items()
    ]
    read = [*sorted(LANGUAGES.glob("*.json")), *options.sets]
    sets = {path.stem: read_question_set(path) for path in read}
    sets = {
        name: replace(
            each, questions=each.questions[::every] if len(each.questions) > FEW else each.questions
        )
        for name, each in sets.items()
    }
    tables.append(_documents_table("Documents found, each set alone", sets, is_mixed=False))
    tables.append(_documents_table("Documents found, all sets in one library", sets, is_mixed=True))
    return tables


# -- Documents -------------------------------------------------------------------------------------

_COLUMNS: Final = ("recall@1", "recall@5", "recall@10", "MRR", "nDCG@10", "shown to a model")


def _documents_table(title: str, sets: Mapping[str, QuestionSet], *, is_mixed: bool) -> Table:
    named = {name: _with_prefix(name, each) for name, each in sets.items()}
    groups = [named] if is_mixed else [{name: each} for name, each in named.items()]
    rows: list[list[Any]] = []
    for group in groups:
        for embedder in EMBEDDERS:
            say(f"  {', '.join(group)}: {embedder}")
            rows += _measure_documents(group, embedder)
    return Table(title, ("set, embedder, way", *_COLUMNS), rows)


def _with_prefix(name: str, questions: QuestionSet) -> QuestionSet:
    """Let no two sets have documents of the same path."""
    return QuestionSet(
        [
            replace(each, grades={f"{name}/{path}": grade for path, grade in each.grades.items()})
            for each in questions.questions
        ],
        [replace(each, path=f"{name}/{each.path}") for each in questions.documents],
    )


def _measure_documents(group: Mapping[str, QuestionSet], embedder: str) -> list[list[Any]]:
    documents = [document for each in group.values() for document in each.documents]
    with across_tenants():
        library, embed = fill_library(documents, embedder)
    plain = PlainBM25([Counter(stored_words(each.text)) for each in documents])
    rows: list[list[Any]] = []
    with as_tenant(Tenant(library.organization_id, is_whole=True)):
        for name, each in group.items():
            words = evaluate(library, each.questions, retrievers=("words",))
            near = evaluate(library, each.questions, retrievers=("vectors",), embed=embed)
            ways = {
                "vectors": near,
                "RRF of words and vectors": _add_by_rank(words, near),
                "Amber": evaluate(library, each.questions, embed=embed),
            }
            if embedder == EMBEDDERS[0]:
                ranked = [best_first(plain.scores(asked_words(one.question))) for one in words]
                bm25 = [
                    replace(one, found=[documents[place].path for place in places])
                    for one, places in zip(words, ranked, strict=True)
                ]
                ways = {"BM25": bm25, "Amber's words": words} | ways
            rows += [
                [f"{name}, {embedder}, {way}", *_figures(outcomes, is_gated="Amber" in way)]
                for way, outcomes in ways.items()
            ]
    return rows


def _figures(outcomes: Sequence[EvaluationResult], *, is_gated: bool) -> list[Any]:
    said = summary(outcomes)
    shown = 100 * fmean(each.best_relevance >= MIN_RELEVANCE for each in outcomes)
    means = [100 * said.mrr, 100 * said.ndcg_10, shown if is_gated else None]
    return [*said.recall.values(), *means]


def _add_by_rank(
    one: Sequence[EvaluationResult], other: Sequence[EvaluationResult]
) -> list[EvaluationResult]:
    added = []
    for first, second in zip(one, other, strict=True):
        ranks = reciprocal_ranks([(first.found, 1.0), (second.found, 1.0)], k=USUAL_K)
        added.append(replace(first, found=sorted(ranks, key=lambda each: -ranks[each])))
    return added


# -- Text ------------------------------------------------------------------------------------------


def _text_table(name: str, excerpts: ExcerptSet) -> Table:
    documents = [SetDocument(path, path, text) for path, text in excerpts.texts.items()]
    rows: list[list[Any]] = []
    for size, overlap in CHUNKINGS:
        sizes = {"chunk_tokens": size, "overlap_tokens": overlap}
        for embedder in EMBEDDERS[:2]:
            say(f"  {name}: {size}/{overlap}, {embedder}")
            with across_tenants():
                library, embed = fill_library(documents, embedder, **sizes)
            with as_tenant(Tenant(library.organization_id, is_whole=True)):
                ways = _show(library, excerpts, embed)
            rows += [
                [f"{size}/{overlap}, {embedder}, {way}", *found] for way, found in ways.items()
            ]
    return Table(
        f"Text found: {name}",
        ("tokens/overlap, embedder", "recall", "precision", "IoU", "tokens"),
        rows,
        (f"{len(excerpts.questions)} questions to {len(excerpts.texts)} texts, {SHOWN} passages.",),
    )


def _show(library: Library, excerpts: ExcerptSet, embed: "Embed | None") -> dict[str, list[float]]:
    """Return figures of the passages as they are listed, of their chunks as they are, and of what a turn's
    model is shown."""
    found: dict[str, list[tuple[float, float, float, int]]] = defaultdict(list)
    for asked in excerpts.questions:
        known = {library.embedding_model_id: embed(asked.question)} if embed else None
        measure = partial(measure_overlap, excerpts, asked.text, asked.excerpts)
        passages = search([library], asked.question, k=SHOWN, query_vectors=known).passages
        found["as shown"].append(measure(_spans(passages)))
        ids = [pk for each in passages for pk in each.chunk_ids]
        rows = DocumentChunk.objects.filter(pk__in=ids)
        found["whole chunks"].append(
            measure(list(rows.values_list("document__path", "start", "end")))
        )
        result = search([library], asked.question, k=OF_A_TURN, query_vectors=known)
        found["to a model"].append(measure(_spans(result.relevant)))
    return {way: _means(each) for way, each in found.items()}


def _spans(passages: Sequence[Passage]) -> list[tuple[str, int, int]]:
    return [(each.document.path or "", each.start, each.end) for each in passages]


def measure_overlap(
    excerpts: ExcerptSet,
    text: str,
    wanted: Sequence[tuple[int, int]],
    spans: Sequence[tuple[str, int, int]],
) -> tuple[float, float, float, int]:
    """Return recall, precision, intersection over union, and tokens of the spans."""
    want = {at for start, end in wanted for at in range(start, end)}
    mine = {at for path, start, end in spans if path == text for at in range(start, end)}
    shown = sum(end - start for _, start, end in spans)
    both = len(want & mine)
    used = sum(tokens.count_text(excerpts.texts[path][start:end]) for path, start, end in spans)
    union = len(want) + shown - both
    return both / len(want), both / shown if shown else 0.0, both / union, used


def _means(found: Sequence[tuple[float, float, float, int]]) -> list[float]:
    recall, precision, iou, used = (fmean(each) for each in zip(*found, strict=True))
    return [100 * recall, 100 * precision, 100 * iou, used]


# -- Libraries -------------------------------------------------------------------------------------


def fill_library(
    documents: Sequence[SetDocument], embedder: str, **fields: Any
) -> "tuple[Library, Embed | None]":
    """Index the documents in a library of an organization of its own.

    Returns what embeds a question, if it is not the library's own embedder.
    """
    slug = f"quality-{new_id().hex}"
    model = EmbeddingModel.objects.create(
        provider=_provider("offline:"),
        alias=slug,
        upstream_id="offline",
        dimensions=512 if embedder == EMBEDDERS[0] else DIMENSIONS,
    )
    library = Library.objects.create(
        organization=Organization.objects.create(name=slug, slug=slug),
        name="Quality",
        embedding_model=model,
        **fields,
    )
    load(library, QuestionSet([], list(documents)))
    embed = None
    if embedder != EMBEDDERS[0]:
        model.provider = _provider("http://127.0.0.1:9/v1")  # it is never asked
        model.save(update_fields=["provider"])
        embed = _replace_vectors(library, is_random=embedder == "random")
    library = Library.objects.select_related("embedding_model__provider").get(pk=library.pk)
    survey(library)
    return library, embed


def _provider(base_url: str) -> Provider:
    return Provider.objects.get_or_create(name=base_url, defaults={"base_url": base_url})[0]


def _replace_vectors(library: Library, *, is_random: bool) -> "Embed":
    """Give all chunks vectors of another embedder, and return what embeds questions with it."""
    rows = DocumentChunk.objects.filter(library=library).values_list("pk", "content")
    ids, texts = zip(*rows, strict=True)
    dice = np.random.default_rng(1)
    stand_in = None if is_random else StandInEmbedder(texts)

    def embed_all(some: Sequence[str]) -> "NDArray[np.float32]":
        vectors = (
            stand_in.embed(some)
            if stand_in
            else dice.normal(size=(len(some), DIMENSIONS)).astype(np.float32)
        )
        padded = np.zeros((len(some), DIMENSIONS), np.float32)
        padded[:, : vectors.shape[1]] = vectors
        lengths = np.linalg.norm(padded, axis=1, keepdims=True)
        padded[:, 0] += (lengths == 0)[:, 0]  # a text without a known word points somewhere, too
        return np.asarray(padded / np.where(lengths > 0, lengths, 1), np.float32)

    vectors = embed_all(texts)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE libraries_documentchunk SET vector = %s::halfvec WHERE id = %s",
            [(halfvec_text(vector), pk) for vector, pk in zip(vectors, ids, strict=True)],
        )
    return lambda question: embed_all([question])[0]
