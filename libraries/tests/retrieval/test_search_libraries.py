"""Search: what is found and what is not, whose, by which retriever; and what is left out and said so."""

from typing import Any

import numpy as np
import pytest

from libraries.models import Document, DocumentChunk, Library
from libraries.retrieval.search import Filters
from libraries.tests.ledger import ingest, new_document, new_library, new_model
from libraries.tests.shelf import random_vectors, search, shelve
from tests.fixtures.personas import api
from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]

pytestmark = pytest.mark.django_db

FACTS = {
    "healthy": "健康的饮食习惯对老年人很重要，医生建议每天散步。",
    "year": "本公司于2024年在上海成立，主要生产阀门。",
    "language": "The parser is written in C++ and calls foo_bar.baz() before anything else.",
    "part": "Order the gasket as part number AB-1234/5.6 from the catalogue.",
    "pump": "To bleed the pump, open the upper valve by a quarter turn and wait.",
    "cat": "Cats sleep for sixteen hours a day and dislike closed doors.",
    "tax": "The tax office answers letters within six weeks, rarely sooner.",
    "other part": "Order the bearing as part number AB-1243/5.6 from the catalogue.",
}


@pytest.fixture
def library(alice):
    library = new_library(alice, embedding_model=new_model(dimensions=512))
    for name, text in FACTS.items():
        shelve(library, text, name=f"{name}.txt", path=f"facts/{name}.txt")
    return library


def names(found: Any) -> list[str]:
    return [passage.document.name.removesuffix(".txt") for passage in found.passages]


QUESTIONS = [
    ("健康", "healthy"),
    ("老年人怎样才健康？", "healthy"),
    ("2024年", "year"),
    ("公司是哪年成立的", "year"),
    ("C++", "language"),
    ("foo_bar.baz()", "language"),
    ("AB-1234/5.6", "part"),
    ("AB-1243/5.6", "other part"),
    ("how do I bleed a pump", "pump"),
    ("How long do cats sleep?", "cat"),
    ("健", "healthy"),
    ("pump.txt", "pump"),
]


@pytest.mark.parametrize("retrievers", [("words", "vectors"), ("words",)], ids=["both", "words"])
@pytest.mark.parametrize(("query", "expected"), QUESTIONS, ids=[q for q, _ in QUESTIONS])
def test_what_is_asked_for_comes_first(library, query, expected, retrievers):
    found = search([library], query, k=3, retrievers=retrievers)
    assert names(found)[0] == expected
    assert found.passages[0].text_rank == 1
    assert found.passages[0].relevance > 0.3
    assert found.notes == []


@pytest.mark.parametrize(("query", "expected"), QUESTIONS, ids=[q for q, _ in QUESTIONS])
def test_random_vectors_do_no_harm(library, query, expected):
    noise = random_vectors(1, 512, seed=len(query))[0]
    vectors = {library.embedding_model_id: noise}
    assert names(search([library], query, k=3, query_vectors=vectors))[0] == expected


def test_a_passage_says_where_it_stands_and_why(library):
    passage = search([library], "cats sleep", k=1).passages[0]
    document = Document.objects.get(name="cat.txt")
    assert (passage.number, passage.document.id) == (1, document.pk)
    assert document.text is not None
    assert passage.document.path == "facts/cat.txt"
    assert document.text[passage.start : passage.end] == passage.content
    assert passage.chunk_ids == (DocumentChunk.objects.get(document=document).pk,)
    assert (passage.page, passage.library_id) == (1, library.pk)
    assert (passage.text_rank, passage.vector_rank) == (1, 1)
    assert passage.score == pytest.approx(1, abs=0.01)


def test_no_more_than_k_and_numbered(library):
    found = search([library], "part number", k=2)
    assert names(found) == ["part", "other part"] or names(found) == ["other part", "part"]
    assert [passage.number for passage in found.passages] == [1, 2]


@pytest.mark.parametrize("query", ["", "  \n", "?!", "…"])
def test_a_question_without_words_is_no_error(library, query):
    found = search([library], query, k=3)
    assert not found.relevant


@pytest.mark.parametrize(
    "query", ["' | 'x", "\\", "a & b | !c <-> d", "%s", "x" * 9_000, "健" * 999]
)
def test_signs_of_query_languages_are_only_text(library, query):
    search([library], query, k=3)


def test_what_is_about_something_else_is_not_relevant(library):
    found = search([library], "what is the capital of France?", k=3)
    assert not found.relevant
    assert search([library], "How long do cats sleep?", k=3).relevant


def test_nothing_is_found_where_nothing_is(alice):
    assert search([new_library(alice)], "cats").passages == []
    assert search([], "cats").passages == []


# -- Whose ----------------------------------------------------------------------------------------


def test_only_the_libraries_asked(library, alice, mallory):
    for owner in (alice, mallory):
        other = new_library(owner, embedding_model=library.embedding_model)
        shelve(other, "Cats sleep for sixteen hours a day, says another library.")
    found = search([library], "cats sleep", k=50)
    assert {passage.library_id for passage in found.passages} == {library.pk}


def test_a_text_that_names_another_library_is_not_found_there(library, mallory):
    """The word that stands for a library in the index is not one a text can have."""
    other = new_library(mallory, embedding_model=library.embedding_model)
    shelve(other, f"={library.pk.hex} library::{library.pk} cats sleep for sixteen hours")
    found = search([library], "cats sleep hours", k=50)
    assert {passage.library_id for passage in found.passages} == {library.pk}


def test_several_libraries_at_once_also_of_different_models(library, alice):
    other = new_library(alice, embedding_model=new_model(dimensions=64))
    shelve(other, "Dogs sleep for twelve hours a day.", name="dog.txt")
    found = search([library, other], "How long do dogs and cats sleep?", k=2)
    assert set(names(found)) == {"dog", "cat"}
    assert all(passage.vector_rank for passage in found.passages)


def test_chunks_of_a_model_the_library_does_not_use_are_not_found(library):
    """While a library is embedded anew it has chunks of both models."""
    old, new = library.embedding_model, new_model(dimensions=64)
    library.embedding_model = new
    shelve(library, "Cats of the new model sleep as well.", name="new.txt")
    assert "cat" not in names(search([library], "cats sleep", k=50))
    library.embedding_model = old
    assert "new" not in names(search([library], "cats sleep", k=50))


# -- Filters ----------------------------------------------------------------------------------------


@pytest.fixture
def filtered(alice):
    library = new_library(alice)
    for path, year in [("a/one.md", 1), ("a/two.md", 2), ("ab/three.md", 2), (None, 1)]:
        shelve(
            library,
            "Cats sleep for sixteen hours a day.",
            name=path or "none",
            path=path,
            metadata={"year": year, "tags": ["x"]},
        )
    return library


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "a/one.md a/two.md ab/three.md none"),
        ({"path_prefix": "a/"}, "a/one.md a/two.md"),
        ({"path_prefix": "a"}, "a/one.md a/two.md ab/three.md"),
        ({"path_prefix": "%"}, ""),
        ({"path_prefix": "a_"}, ""),
        ({"metadata": {"year": 2}}, "a/two.md ab/three.md"),
        ({"metadata": {"year": 2, "tags": ["x"]}}, "a/two.md ab/three.md"),
        ({"metadata": {"year": "2"}}, ""),
        ({"metadata": {"' OR 1=1 --": "x"}}, ""),
        ({"metadata": {"year": 2}, "path_prefix": "a/"}, "a/two.md"),
    ],
    ids=str,
)
def test_filters_leave_what_they_say(filtered, filters, expected):
    found = search([filtered], "cats sleep", k=50, filters=Filters(**filters))
    assert {passage.document.name for passage in found.passages} == set(expected.split())


def test_documents_can_be_named(filtered):
    one = Document.objects.get(path="a/one.md")
    found = search([filtered], "cats", k=50, filters=Filters(document_ids=[one.pk]))
    assert [passage.document.id for passage in found.passages] == [one.pk]


# -- Neighbours -------------------------------------------------------------------------------------


def test_neighbours_become_one_passage_with_exact_offsets(alice):
    library = new_library(alice)
    document = shelve(
        library,
        "Preface, about nothing at all.",
        "Cats sleep for sixteen hours.",
        "Cats sleep by day and by night.",
        "An appendix on the tax office.",
    )
    for n in range(9):
        shelve(library, f"Filler number {n} about clouds and rain.")
    found = search([library], "cats sleep", k=3)
    first = found.passages[0]
    assert (first.start, first.end) == (
        document.text.index("Cats"),
        document.text.index("An app") - 2,
    )
    assert document.text[first.start : first.end] == first.content
    assert len(first.chunk_ids) == 2
    assert first.page == 2
    assert len(found.passages) == 3


def test_documents_of_the_pipeline_are_found_with_exact_offsets(alice, transactional_db):
    library = new_library(alice)
    document = new_document(
        library, "\n\n".join(f"Part {n}: valve {n} of pump {n * 7}." for n in range(90))
    )
    ingest()
    library = Library.objects.select_related("embedding_model__provider").get()
    document.refresh_from_db()
    found = search([library], "valve 44 of pump 308", k=3)
    assert "pump 308" in found.passages[0].content
    for passage in found.passages:
        assert document.text[passage.start : passage.end] == passage.content


# -- What others do wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("upstream_id", ["fake-500", "fake-401", "fake-malformed-first"])
def test_words_alone_when_the_question_cannot_be_embedded(alice, fake_provider, upstream_id):
    model = new_model(upstream_id, base_url=fake_provider.base_url)
    library = new_library(alice, embedding_model=model)
    shelve(library, "Cats sleep for sixteen hours.", vectors=random_vectors(1, 64))
    found = search([library], "cats sleep", k=3)
    assert len(found.passages) == 1
    assert (found.passages[0].text_rank, found.passages[0].vector_rank) == (1, None)
    assert found.notes == ["The embedding model did not answer, so only words were searched."]


def test_a_given_vector_spares_the_provider(alice, fake_provider):
    model = new_model("fake-500", base_url=fake_provider.base_url)
    library = new_library(alice, embedding_model=model)
    vectors = random_vectors(20, 64)
    for n in range(20):
        shelve(library, f"Number {n}", vectors=vectors[n : n + 1], name=f"{n}.txt")
    found = search([library], "nothing alike", k=3, query_vectors={model.pk: vectors[7]})
    assert names(found)[0] == "7"
    assert found.passages[0].relevance > 0.9
    assert found.notes == []


def test_a_vector_of_the_right_model_finds_across_languages(alice):
    """No word is shared: the vectors alone decide."""
    library = new_library(alice)
    vectors = random_vectors(30, 64)
    for n in range(30):
        shelve(library, f"第{n}章：健康", vectors=vectors[n : n + 1], name=f"{n}.txt")
    near = vectors[11] + 0.8 * vectors[12]
    vectors_given = {library.embedding_model_id: near / np.linalg.norm(near)}
    found = search([library], "chapter on health", k=2, query_vectors=vectors_given)
    assert names(found) == ["11", "12"]


# -- Over REST --------------------------------------------------------------------------------------

BODY = {"query": "How long do cats sleep?", "k": 2}


def post(who: Any, library: Any, body: Any = BODY) -> Any:
    return api(who).post(f"/api/v1/libraries/{library.pk}/search/", body)


def test_results_over_rest(library, alice):
    answer = post(alice, library)
    assert answer.status_code == 200
    said = answer.json()
    assert said["notes"] == []
    assert len(said["results"]) == 2
    first = said["results"][0]
    assert first["content"] == FACTS["cat"]
    assert first["document"]["name"] == "cat.txt"
    assert first["document"]["path"] == "facts/cat.txt"
    assert (first["start"], first["end"], first["page"]) == (0, len(FACTS["cat"]), 1)
    assert (first["number"], first["text_rank"], first["vector_rank"]) == (1, 1, 1)
    assert 0 < first["relevance"] <= 1
    assert first["score"] >= said["results"][1]["score"]
    assert {"chunk_ids", "heading", "library_id"} <= set(first)


def test_a_shared_library_is_searched_by_members_only(library, bob, carol, mallory):
    for who in (bob, carol, mallory):
        assert post(who, library).status_code == 404
    Library.objects.update(shared=True)
    assert post(bob, library).status_code == 200
    assert post(mallory, library).status_code == 404
    Library.objects.update(deleted_at="2031-01-01T00:00Z")
    assert post(bob, library).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": None}, "query"),
        ({"query": ["x"]}, "query"),
        ({"query": "a\0b"}, "query"),
        ({"query": "x" * 4_001}, "query"),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "k": 51}, "k"),
        ({"query": "x", "k": "many"}, "k"),
        ({"query": "x", "filters": []}, "filters"),
        ({"query": "x", "filters": {"document_ids": ["x"]}}, "filters.document_ids.0"),
        ({"query": "x", "filters": {"document_ids": "x"}}, "filters.document_ids"),
        ({"query": "x", "filters": {"path_prefix": {}}}, "filters.path_prefix"),
        ({"query": "x", "filters": {"path": "a/"}}, "filters.path"),
        ({"query": "x", "path_prefix": "a/"}, "path_prefix"),
        ({"query": "x", "filters": {"metadata": [1]}}, "filters.metadata"),
        ({"query": "x", "filters": {"metadata": {"a": "x" * 5_000}}}, "filters.metadata"),
    ],
    ids=str,
)
def test_a_bad_body_is_told_where(library, alice, body, field):
    answer = post(alice, library, body)
    assert answer.status_code == 400, answer.content
    assert field.split(".")[0] in str(answer.json()["error"])


def test_filters_over_rest(library, alice, mallory):
    cat, pump = (Document.objects.get(name=f"{name}.txt") for name in ("cat", "pump"))
    filters: Any = {"document_ids": [str(pump.pk)], "path_prefix": "facts/"}
    said = post(alice, library, {"query": "cats", "filters": filters}).json()
    assert {each["document"]["id"] for each in said["results"]} <= {str(pump.pk)}
    foreign = shelve(new_library(mallory), "Cats.")
    filters = {"document_ids": [str(cat.pk), str(foreign.pk)]}
    assert post(alice, library, {"query": "cats", "filters": filters}).status_code == 404


def test_several_libraries_over_rest(library, alice, mallory):
    other = new_library(alice)
    shelve(other, "Dogs sleep for twelve hours.", name="dog.txt")
    foreign = new_library(mallory)
    address = "/api/v1/libraries/search/"
    body = {"query": "dogs and cats sleep", "library_ids": [str(library.pk), str(other.pk)]}
    said = api(alice).post(address, body).json()
    assert {each["library_id"] for each in said["results"][:2]} == {str(library.pk), str(other.pk)}
    body["library_ids"] = [str(library.pk), str(foreign.pk)]
    assert api(alice).post(address, body).status_code == 404
    assert api(alice).post(address, body | {"library_ids": []}).status_code == 400
    assert api().post(address, body).status_code == 401
