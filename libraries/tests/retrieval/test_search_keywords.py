"""BM25 over the index: rare words count more than common ones, short chunks more than long ones."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from libraries.models import Document
from libraries.retrieval import keyword_retriever
from libraries.retrieval.keyword_retriever import search_keywords
from libraries.retrieval.scope import Filters, scopes_of
from libraries.tests.ledger import new_library
from libraries.tests.shelf import keyword_hits, search, shelve
from tests.fixtures.tenants import for_organization

pytestmark = pytest.mark.django_db

FILLER = "the machine stands in the hall and the door of the hall is open"


@pytest.fixture
def library(alice):
    library = new_library(alice)
    for n in range(20):
        shelve(library, f"{FILLER} number{n}", name=f"filler-{n}")
    return library


def names(library: Any, query: str, **filters: Any) -> list[str]:
    retriever = keyword_hits(library, query, Filters(**filters))
    by_chunk = {doc.chunks.get().pk: doc.name for doc in Document.objects.all()}
    return [by_chunk[hit.id] for hit in retriever.hits]


def test_a_rare_word_outweighs_many_common_ones(library):
    shelve(library, "gasket", name="rare")
    assert names(library, "the machine in the hall gasket")[0] == "rare"


def test_a_word_that_occurs_more_often_counts_more_but_ever_less(library):
    for count in (1, 2, 8):
        text = " ".join(["gasket"] * count + ["other"] * (8 - count))
        shelve(library, text, name=f"times-{count}")
    assert names(library, "gasket") == ["times-8", "times-2", "times-1"]
    retriever = keyword_hits(library, "gasket")
    first, second, third = (hit.score for hit in retriever.hits)
    assert first < 3 * third
    assert first - second < 6 * (second - third)


def test_the_shorter_of_two_chunks_comes_first(library):
    shelve(library, f"gasket {FILLER} {FILLER} {FILLER}", name="long")
    shelve(library, f"gasket {FILLER}", name="short")
    assert names(library, "gasket") == ["short", "long"]


def test_the_whole_of_a_name_comes_before_its_parts(library):
    shelve(library, "foo and bar and baz are three names", name="parts")
    shelve(library, "call foo_bar.baz() with three names", name="whole")
    shelve(library, "call foo_bar.qux() with three names", name="other")
    assert names(library, "foo_bar.baz()")[0] == "whole"


def test_coverage_is_the_share_of_the_question_by_rarity(library):
    shelve(library, "gasket and bearing")
    shelve(library, "gasket and flange")

    def best(query: str) -> float:
        coverage: float = keyword_hits(library, query).hits[0].coverage
        return coverage

    assert best("gasket") == best("gasket bearing") == 1
    assert best("what is the gasket") == 1
    assert 0.3 < best("gasket turbine") < 0.5
    assert best("hall of the turbine propeller nozzle") < 0.1


def test_pairs_that_no_chunk_has_count_half(library):
    shelve(library, "打开阀门")
    (hit,) = keyword_hits(library, "阀门怎么").hits
    assert 0.4 < hit.coverage < 0.6


def test_one_statement_whatever_is_asked(library):
    scopes = scopes_of([library], None)
    for query, queries in [("the machine in the hall gasket", 1), ("?!", 0)]:
        with for_organization(library.organization_id), CaptureQueriesContext(connection) as asked:
            search_keywords(scopes, query)
        assert len(asked) == queries


def test_filtered_documents_are_counted_among_themselves(library):
    shelve(library, "gasket machine", name="in", path="a/in")
    shelve(library, "gasket machine", name="out", path="b/out")
    assert names(library, "gasket", path_prefix="a/") == ["in"]
    assert names(library, "gasket", path_prefix="c/") == []


# -- Words that very many chunks have ----------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(keyword_retriever, "MOST_HITS", 5)


def test_a_common_word_chooses_no_chunk_but_still_ranks(library, few):
    shelve(library, f"gasket {FILLER}", name="both")
    shelve(library, "gasket alone and nothing else but words that nobody asked for", name="one")
    assert names(library, "machine gasket") == ["both", "one"]


def test_of_common_words_alone_some_are_found(library, few):
    assert len(names(library, "the machine in the hall")) >= 5


def test_no_more_than_the_candidates(library, monkeypatch):
    monkeypatch.setattr(keyword_retriever, "CANDIDATES", 7)
    retriever = keyword_hits(library, "machine")
    assert len(retriever.hits) == 7
    assert retriever.floor == retriever.hits[-1].score > 0


# -- Languages ----------------------------------------------------------------------------------------

GERMAN = (
    "Der Müller fuhr mit dem Wagen in die Stadt und kam am Abend nicht wieder nach Hause.",
    "Die Kinder haben im Garten des Nachbarn Äpfel gepflückt und unter dem Baum gegessen.",
    "In den Häusern am Fluss wohnten früher die Fischer, die ihre Netze am Ufer flickten.",
)


@pytest.fixture
def shelf(alice):
    library = new_library(alice)
    for text in GERMAN:
        shelve(library, text)
    return library


@pytest.mark.parametrize(
    ("query", "place"),
    [("Wagen des Müllers", 0), ("ein Apfel vom Baume", 1), ("Haus der Fischerin", 2)],
)
def test_words_are_found_in_other_forms_of_their_language(shelf, query, place):
    hits = keyword_hits(shelf, query).hits
    assert hits[0].id == Document.objects.get(text=GERMAN[place]).chunks.get().pk


def test_a_library_of_two_languages_is_asked_in_both(shelf):
    shelve(shelf, "The houses at the harbour were painted by the sailors in the winter.")
    assert shelf.languages == {"de": 3, "en": 1}
    assert len(keyword_hits(shelf, "Netz").hits) == 1
    assert len(keyword_hits(shelf, "house").hits) == 1


def test_a_word_is_as_rare_as_it_is_in_its_language(shelf):
    """In every German text, and therefore in few of all: it must not count as rare."""
    for n in range(30):
        shelve(shelf, f"The {n}th machine stands in a hall of its own and is painted green.")
    shelve(shelf, "Bald Nachbarn, Nachbarn, Nachbarn bald.")
    for n in range(4):
        shelve(shelf, f"Der Bald der {n}. Wagen kommt bald, und der Fahrer ist der Sohn.")
    weights = keyword_hits(shelf, "Wann kommt bald der Nachbar?").weights
    assert weights["nachbar"] > 2 * weights["bald"]


def test_common_words_count_less(library):
    shelve(library, "why why why why", name="why")
    shelve(library, f"{FILLER} gasket", name="gasket")
    assert names(library, "why gasket") == ["gasket", "why"]


# -- Very small libraries -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "is_shown"),
    [
        ("What does the manual say about the valve?", True),
        ("How often is the valve greased?", True),
        ("Which maintenance does the valve need?", True),
        ("What is the capital of France?", False),
        ("Who won the world cup in 1998?", False),
        ("How many months does a pregnant elephant carry her young?", False),
        ("阀门怎么保养？", False),
    ],
)
def test_a_question_to_the_only_document_is_answered(alice, query, is_shown):
    library = new_library(alice)
    shelve(
        library, "The intake valve V-12 is greased every three months. Close the main tap first."
    )
    found = search([library], query)
    assert bool(found.relevant) == is_shown
