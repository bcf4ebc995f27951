"""Vector indexes: built when worth it, whole or not at all, by one at a time, gone when unused."""

import threading
from typing import Any

import pytest
from django.db import connection, connections

from libraries.embedding import vector_index
from libraries.embedding.vector_index import index_name, rows_indexed, tend_indexes
from libraries.models import DocumentChunk, Library
from libraries.retrieval import vector_retriever
from libraries.retrieval.scope import SearchScope
from libraries.tests.ledger import new_library, new_model
from libraries.tests.shelf import random_vectors, search, shelve

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = 60


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(vector_index, "WORTH_AN_INDEX", COUNT)


@pytest.fixture
def library(alice):
    library = new_library(alice)
    fill(library, COUNT)
    yield library
    with connection.cursor() as cursor:
        for name, _ in indexes():
            cursor.execute(f"DROP INDEX {name}")


def fill(library: Any, count: int, seed: int = 0) -> None:
    vectors = random_vectors(count, 64, seed)
    for n, vector in enumerate(vectors):
        shelve(library, f"Number {n}", vectors=[vector])


def indexes() -> list[tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid"
            " WHERE relname LIKE 'chunk_hnsw_%' ORDER BY 1"
        )
        return list(cursor.fetchall())


def test_a_model_gets_its_index_once_it_has_many_chunks(library, alice):
    few = new_library(alice)
    fill(few, COUNT - 1)
    tend_indexes()
    assert indexes() == [(index_name(library.embedding_model_id), True)]
    assert rows_indexed(library.embedding_model) == COUNT
    assert rows_indexed(few.embedding_model) == 0
    tend_indexes()
    assert len(indexes()) == 1


def test_chunks_that_come_later_are_in_it(library):
    tend_indexes()
    fill(library, 5, seed=1)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE libraries_documentchunk")
    assert rows_indexed(library.embedding_model) == COUNT + 5


def test_what_a_killed_build_left_is_built_again(library):
    name = index_name(library.embedding_model_id)
    tend_indexes()
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass"
        )
    assert rows_indexed(library.embedding_model) == 0
    tend_indexes()
    assert indexes() == [(name, True)]


def test_an_index_nobody_uses_goes(library):
    tend_indexes()
    DocumentChunk.objects.all().delete()
    tend_indexes()
    assert indexes() == []


def test_the_index_of_a_model_that_is_gone_goes(library):
    tend_indexes()
    model = library.embedding_model
    Library.objects.all().delete()
    model.delete()
    tend_indexes()
    assert indexes() == []


def test_two_workers_at_once_build_it_once(library, caplog):
    failed: list[BaseException] = []

    def tend() -> None:
        try:
            tend_indexes()
        except BaseException as error:  # noqa: BLE001  (told to the test)
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=tend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert indexes() == [(index_name(library.embedding_model_id), True)]


def test_who_finds_another_at_it_leaves_at_once(library):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [vector_index._LOCK])
    tend_indexes()
    assert indexes() == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [vector_index._LOCK])
    tend_indexes()
    assert len(indexes()) == 1


def test_the_guard_is_gone_after_a_failure(library, monkeypatch):
    def fail(model: Any) -> None:
        raise RuntimeError("disk full")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(vector_index, "_build_index", fail)
        tend_indexes()
    tend_indexes()
    assert len(indexes()) == 1


# -- Searching by it -------------------------------------------------------------------------------


@pytest.fixture
def by_index(library, monkeypatch):
    """Every search goes by the index, and says so."""
    tend_indexes()
    used: list[bool] = []
    real = vector_retriever._search_index

    def noted(asked: Any) -> Any:
        retriever = real(asked)
        used.append(retriever is not None)
        return retriever

    monkeypatch.setattr(vector_retriever, "_search_index", noted)
    monkeypatch.setattr(vector_retriever, "EXACT_CHUNKS", 10)
    monkeypatch.setattr(vector_retriever, "INDEX_COST", 0)
    monkeypatch.setattr(vector_retriever, "HITS", 20)
    return used


def found(library: Any, vector: Any, k: int = 10) -> list[str]:
    library = Library.objects.select_related("embedding_model__provider").get(pk=library.pk)
    vectors = {library.embedding_model_id: vector}
    passages = search(
        [library], "number", k=k, query_vectors=vectors, retrievers=["vectors"]
    ).passages
    return [str(pk) for passage in passages for pk in passage.chunk_ids]


def test_the_index_finds_what_comparing_all_finds(library, by_index, monkeypatch):
    for seed in range(10):
        vector = random_vectors(1, 64, seed + 7)[0]
        nearest = found(library, vector)
        monkeypatch.setattr(vector_retriever, "EXACT_CHUNKS", 1_000)
        assert found(library, vector) == nearest
        monkeypatch.setattr(vector_retriever, "EXACT_CHUNKS", 10)
    assert by_index == [True] * 10


def test_a_small_tenant_finds_all_of_its_own(library, alice, mallory, by_index):
    """Behind sixty chunks of others that are all nearer."""
    vector = random_vectors(1, 64, seed=3)[0]
    crowd = new_library(mallory, embedding_model=library.embedding_model)
    shelve(crowd, *["near"] * 60, vectors=[vector] * 60)
    small = new_library(alice, embedding_model=library.embedding_model)
    fill(small, 25, seed=5)
    hits = found(small, vector)
    assert by_index == [True]
    own = DocumentChunk.objects.filter(library=small).values_list("pk", flat=True)
    assert len(hits) == 10
    assert set(hits) <= set(map(str, own))


def test_where_the_index_finds_too_few_all_are_compared(library, alice, by_index, monkeypatch):
    monkeypatch.setattr(vector_retriever, "HITS", 30)
    small = new_library(alice, embedding_model=library.embedding_model)
    fill(small, 25, seed=5)
    assert len(found(small, random_vectors(1, 64)[0], k=25)) == 25
    assert by_index == [False]


@pytest.mark.parametrize(
    ("count", "indexed", "is_worth_it"),
    [
        (3_000, 1_000_000, False),
        (200_000, 200_000, True),
        (60_000, 200_000, True),
        (3_001, 1_000_000, False),
        (60_000, 0, False),
    ],
    ids=str,
)
def test_the_way_is_chosen_by_what_it_costs(monkeypatch, count, indexed, is_worth_it):
    monkeypatch.setattr(vector_retriever, "rows_indexed", lambda model: indexed)
    scope = SearchScope(new_model(), (), None, count)
    assert vector_retriever.is_index_worth_it(scope) is is_worth_it
