"""Measure search over 200,000 chunks in 100 organizations, against bare SQL and an exact scan.

It searches in a process of its own, with the database of a running Amber: `python -m bench.library_search
CHUNKS` fills it with synthetic libraries and prints one JSON line. One organization holds three tenths of all
chunks, nine hold a twentieth each, ninety share the rest. For each of these groups it says what a search took,
what its own statements took of that, what SQL written by hand took, and how much of what an exact scan finds was
found.

The SQL by hand is what one writes first: nearest vectors (by index where Amber takes the index),
`ts_rank` over chunks that have any of the words, the texts of the best ten; each question first the
one way and then the other, by turns.
"""

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from operator import truediv
from typing import Any

import django
import numpy as np
from numpy.typing import NDArray

from amber.lib.search.languages import common_words
from bench.loadgen import say
from bench.report import Finding, Json, median
from bench.stand import Stand, vacuum

CHUNKS, QUICK_CHUNKS = 200_000, 20_000
MAX_SECONDS = 3_600

DIMENSIONS = 512
TOPICS = 500
WORDS, CHUNK_WORDS, TOPIC_WORDS = 30_000, 150, 60
"""About 200 tokens a chunk, as new libraries have; three words in ten are those of its topic."""
SENTENCE_WORDS = (6, 26)
PER_DOCUMENT, AT_ONCE = 20, 25
"""Chunks of a document, and documents of a transaction. A COPY each would need more locks than there are."""
WARM, ROUNDS = 5, 40
K = 10
_ENDINGS = ("", "", "", "s", "s", "ed", "ing", "er", "ly", "ation")
_SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ai", "ou")]


def library_search(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Measure beside a running Amber, whose workers have nothing to do meanwhile."""
    with stand.amber(provider_url):
        chunks = QUICK_CHUNKS if is_quick else CHUNKS
        groups = stand.drive("bench.library_search", chunks, timeout_seconds=MAX_SECONDS)
    for group in groups:
        say(f"  {group}")
    asked, own, bare = (
        [ms for group in groups for ms in group[name]]
        for name in ("search_ms", "own_sql_ms", "bare_ms")
    )
    by_size = "; ".join(_times(group) for group in groups)
    recalls = [recall for group in groups for recall in group["recalls"]]
    small = min(groups, key=lambda group: group["chunks"])
    return [
        Finding(
            "search, median against its own bare statements",
            median(map(truediv, asked, own)),
            "x",
            at_most=1.3,
            note="; ".join(
                f"{g['chunks']:,}: {median(map(truediv, g['search_ms'], g['own_sql_ms'])):.2f}"
                for g in groups
            ),
            details={"groups": groups},
        ),
        Finding(
            "search, median against SQL written by hand",
            median(asked) / median(bare),
            "x",
            at_most=1.3,
            note=by_size,
        ),
        Finding(
            "recall@10 of the vectors against comparing all",
            sum(recalls) / len(recalls),
            "",
            at_least=0.95,
            note="; ".join(
                f"{g['chunks']:,}: {sum(g['recalls']) / len(g['recalls']):.3f}" for g in groups
            ),
        ),
        Finding(
            f"chunks found for a tenant with {small['chunks']:,} of them, asked for 10",
            min(small["found"]),
            "",
            at_least=10,
        ),
    ]


def _times(group: Json) -> str:
    way = "index" if group["is_by_index"] else "exact"
    return (
        f"{group['chunks']:,} ({way}): {median(group['search_ms']):.1f} ms,"
        f" by hand {median(group['bare_ms']):.1f}"
    )


# -- In a process of its own ---------------------------------------------------------------------


def _as_system(work: Any) -> Any:
    """Let a function act for the installation: it fills the database, or compares with it."""
    from amber.lib.database.tenant import across_tenants

    @wraps(work)
    def act(*given: Any) -> Any:
        with across_tenants():
            return work(*given)

    return act


def main() -> None:
    django.setup()
    chunks = int(sys.argv[1])
    world = World(np.random.default_rng(1))
    model = _model()
    groups = [[chunks * 3 // 10], [chunks // 20] * 9, [chunks // 4 // 90] * 90]
    libraries = [[_fill(world, model, size) for size in group] for group in groups]
    _settle(libraries)
    print(json.dumps([_measured(world, group) for group in libraries]))  # noqa: T201


class World:
    """Words by Zipf's law, topics that prefer some of them, and a direction for each topic.

    The commonest are English; the others are syllables with English endings, so that texts are cut, told and
    stemmed as English ones are.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        dice = random.Random(1)
        common = sorted(common_words("en"))
        dice.shuffle(common)
        made: dict[str, None] = {}
        while len(made) < WORDS - len(common):
            stem = "".join(dice.choices(_SYLLABLES, k=dice.choice((2, 3, 3, 4))))
            made |= {f"{stem}{dice.choice(_ENDINGS)}": None for _ in range(2)}
        self.words = [*common, *made]
        self._heights = np.cumsum(1 / np.arange(1, len(self.words) + 1))
        self.topics = rng.integers(200, len(self.words), size=(TOPICS, TOPIC_WORDS))
        self.directions = rng.normal(size=(TOPICS, DIMENSIONS))

    def text(self, topic: int, length: int) -> str:
        usual = np.searchsorted(self._heights, self.rng.random(length) * self._heights[-1])
        own = self.rng.choice(self.topics[topic], length)
        chosen = np.where(self.rng.random(length) < 0.3, own, usual)
        words = [self.words[each] for each in chosen]
        sentences = []
        while words:
            count = int(self.rng.integers(*SENTENCE_WORDS))
            sentences.append(" ".join(words[:count]).capitalize())
            words = words[count:]
        return ". ".join(sentences) + "."

    def vector(self, topic: int) -> NDArray[np.float32]:
        vector = self.directions[topic] + self.rng.normal(size=DIMENSIONS)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)

    def question(self) -> tuple[str, NDArray[np.float32]]:
        """Return four words of a topic, and four of the forty commonest."""
        topic = int(self.rng.integers(TOPICS))
        chosen = [*self.rng.choice(self.topics[topic], 4), *self.rng.integers(0, 40, size=4)]
        return " ".join(self.words[each] for each in chosen), self.vector(topic)


@_as_system
def _model() -> Any:
    from providers.models import EmbeddingModel, Provider

    provider = Provider.objects.create(name="Bench", base_url="http://127.0.0.1:9/v1")
    return EmbeddingModel.objects.create(
        provider=provider, alias="bench-search", upstream_id="bench", dimensions=DIMENSIONS
    )


@_as_system
def _fill(world: World, model: Any, size: int) -> Any:
    from django.db import transaction

    from accounts.models import Organization
    from amber.lib.ids import new_id
    from libraries.models import Library

    slug = f"bench-{new_id().hex}"
    organization = Organization.objects.create(name=slug, slug=slug)
    library = Library.objects.create(
        organization=organization, name="Bench", embedding_model=model, chunk_count=size
    )
    sizes = [min(PER_DOCUMENT, size - first) for first in range(0, size, PER_DOCUMENT)]
    for first in range(0, len(sizes), AT_ONCE):
        with transaction.atomic():
            _write(world, library, sizes[first : first + AT_ONCE])
    return library


def _write(world: World, library: Any, sizes: Sequence[int]) -> None:
    """Write a document of each size; most of its chunks are of one topic."""
    from libraries.chunking.chunk_writer import write_chunks
    from libraries.models import Document

    ready = {"stage": "ready", "status": "ready", "name": "bench.txt"}
    documents = [
        Document(organization_id=library.organization_id, library=library, **ready) for _ in sizes
    ]
    Document.objects.bulk_create(documents)
    write_chunks(
        row
        for document, size in zip(documents, sizes, strict=True)
        for row in _chunks(world, document, library.embedding_model_id, size)
    )


def _chunks(world: World, document: Any, model_id: Any, size: int) -> Iterator[Any]:
    from libraries.chunking.chunk_writer import ChunkRow

    topic = int(world.rng.integers(TOPICS))
    start = 0
    for order in range(size):
        own = topic if world.rng.random() < 0.7 else int(world.rng.integers(TOPICS))
        text = f"{world.text(own, CHUNK_WORDS)} "
        yield ChunkRow(
            organization_id=document.organization_id,
            document_id=document.pk,
            library_id=document.library_id,
            embedding_model_id=model_id,
            content=text,
            order=order,
            start=start,
            end=start + len(text),
            page=None,
            heading=None,
            tokens=200,
            vector=world.vector(own),
            name=document.name,
        )
        start += len(text)


@_as_system
def _settle(libraries: list[list[Any]]) -> None:
    """Do what periodic jobs and autovacuum would do later."""
    from libraries.embedding.vector_index import tend_indexes
    from libraries.retrieval.survey import survey

    tend_indexes()
    for group in libraries:
        for library in group:
            survey(library)
    vacuum("libraries_documentchunk")


@dataclass(frozen=True, slots=True)
class Asked:
    library: Any
    query: str
    vector: NDArray[np.float32]


@_as_system
def _measured(world: World, libraries: list[Any]) -> dict[str, Any]:
    from amber.lib.database.tenant import across_tenants
    from libraries.models import Library
    from libraries.retrieval.scope import scopes_of
    from libraries.retrieval.vector_retriever import is_index_worth_it

    ids = [library.pk for library in libraries]
    rows = list(Library.objects.filter(pk__in=ids).select_related("embedding_model__provider"))
    is_by_index = is_index_worth_it(scopes_of(rows[:1], None)[0])
    search_ms, own_ms, bare_ms, recalls, found = [], [], [], [], []
    for number in range(WARM + ROUNDS):
        asked = Asked(rows[number % len(rows)], *world.question())
        ways = [
            (_as_its_tenant(asked), _searched),
            (across_tenants(), lambda each: _bare(each, is_by_index=is_by_index)),
        ]
        taken = [_timed(*way, asked) for way in (ways if number % 2 else ways[::-1])]
        (search, passages), (bare, _) = taken if number % 2 else taken[::-1]
        if number >= WARM:
            search_ms.append(search)
            bare_ms.append(bare)
            own_ms.append(passages.sql_ms)
            found.append(passages.chunks)
            recalls.append(_recall(asked))
    return {
        "chunks": rows[0].chunk_count,
        "is_by_index": is_by_index,
        "search_ms": [round(ms, 2) for ms in search_ms],
        "own_sql_ms": [round(ms, 2) for ms in own_ms],
        "bare_ms": [round(ms, 2) for ms in bare_ms],
        "recalls": recalls,
        "found": found,
    }


def _timed(acting: AbstractContextManager[None], way: Any, asked: Asked) -> tuple[float, Any]:
    from django.db import connection

    with acting:
        connection.ensure_connection()
        began = time.perf_counter()
        found = way(asked)
        return (time.perf_counter() - began) * 1_000, found


def _as_its_tenant(asked: Asked) -> AbstractContextManager[None]:
    from amber.lib.database.tenant import Tenant, as_tenant

    return as_tenant(Tenant(asked.library.organization_id, is_whole=True))


@dataclass(slots=True)
class Searched:
    """How many chunks came back, and how long the statements took."""

    chunks: int = 0
    sql_ms: float = 0.0


def _searched(asked: Asked) -> Searched:
    """Search with a vector that is there already: no embedder is measured."""
    from django.db import connection

    from libraries.retrieval.search import search

    done = Searched()

    def clocked(execute: Any, *statement: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*statement)
        finally:
            done.sql_ms += (time.perf_counter() - began) * 1_000

    vectors = {asked.library.embedding_model_id: asked.vector}
    with connection.execute_wrapper(clocked):
        found = search([asked.library], asked.query, k=K, query_vectors=vectors)
    done.chunks = sum(len(passage.chunk_ids) for passage in found.passages)
    return done


_INDEXED = """
SELECT id FROM libraries_documentchunk WHERE embedding_model_id = '{model}' AND library_id = %s
ORDER BY vector::halfvec({dimensions}) <=> %s LIMIT 100
"""
_EXACT = """
SELECT id FROM libraries_documentchunk WHERE embedding_model_id = %s AND library_id = %s
ORDER BY vector <=> %s::halfvec LIMIT {limit}
"""
_RANKED = """
SELECT id, ts_rank(search, %s::tsquery) FROM libraries_documentchunk
WHERE embedding_model_id = %s AND library_id = %s AND search @@ %s::tsquery
ORDER BY 2 DESC LIMIT 100
"""
_TEXTS = """
SELECT c.id, c.content, c.start, c."end", c.page, d.name, d.path FROM libraries_documentchunk c
JOIN libraries_document d ON d.id = c.document_id WHERE c.id = ANY(%s)
"""


def _bare(asked: Asked, *, is_by_index: bool) -> int:
    from django.db import connection

    from libraries.chunking.chunk_words import words_asked
    from libraries.embedding.halfvec import halfvec_text

    library, vector = asked.library, halfvec_text(asked.vector)
    model_id = library.embedding_model_id
    any_word = " | ".join(word.literal for word in words_asked(asked.query).words)
    connection.ensure_connection()
    with connection.connection.cursor() as cursor, connection.connection.transaction():
        if is_by_index:
            cursor.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
            cursor.execute("SET LOCAL hnsw.ef_search = 100")
            indexed = _INDEXED.format(model=model_id, dimensions=DIMENSIONS)
            cursor.execute(indexed, [library.pk, vector])
        else:
            cursor.execute(_EXACT.format(limit=100), [model_id, library.pk, vector])
        scores: dict[Any, float] = {}
        for rank, row in enumerate(cursor.fetchall(), 1):
            scores[row[0]] = 1 / (60 + rank)
        cursor.execute(_RANKED, [any_word, model_id, library.pk, any_word])
        for rank, row in enumerate(cursor.fetchall(), 1):
            scores[row[0]] = scores.get(row[0], 0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda pk: -scores[pk])[:K]
        cursor.execute(_TEXTS, [best])
        return len(cursor.fetchall())


def _recall(asked: Asked) -> float:
    """Return the share of the ten nearest chunks that are among Amber's first ten."""
    from django.db import connection, transaction

    from libraries.embedding.halfvec import halfvec_text
    from libraries.retrieval import vector_retriever
    from libraries.retrieval.scope import scopes_of

    scope = scopes_of([asked.library], None)[0]
    with transaction.atomic(), connection.cursor() as cursor:
        vector_retriever.prepare_connection()
        hits = vector_retriever.find_by_vector(
            vector_retriever.VectorQuery(scope, asked.vector)
        ).hits
        values = [scope.model.pk, asked.library.pk, halfvec_text(asked.vector)]
        cursor.execute(_EXACT.format(limit=K), values)
        nearest = {row[0] for row in cursor.fetchall()}
    return len(nearest & {pk for pk, _ in hits[:K]}) / len(nearest)


if __name__ == "__main__":
    main()
