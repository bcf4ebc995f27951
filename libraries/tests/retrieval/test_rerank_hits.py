"""The operator's reranker has the last word over what a search found."""

from collections.abc import Iterator
from typing import Any

import pytest

from libraries.tests.ledger import new_library
from libraries.tests.shelf import search, shelve
from tests.fakes.reranker import FakeReranker


@pytest.fixture
def service(settings: Any) -> Iterator[FakeReranker]:
    with FakeReranker() as running:
        settings.AMBER_RERANK_URL = running.url
        yield running


@pytest.fixture
def library(alice):
    library = new_library(alice)
    for name in ("cats sleep cats", "cats sleep for many hours a day", "cats"):
        shelve(library, name, name=name)
    return library


@pytest.mark.django_db
def test_the_reranker_has_the_last_word(service, library):
    found = search([library], "cats sleep", k=3)
    assert found.passages[0].content == "cats"
    assert found.passages[0].score == -4
    assert found.passages[0].text_rank == 3
    assert found.notes == []


@pytest.mark.django_db
def test_without_its_answer_the_order_is_the_fused_one_and_that_is_said(service, library, settings):
    service.status = 503
    found = search([library], "cats sleep", k=3)
    settings.AMBER_RERANK_URL = ""
    assert found.notes == ["The reranker did not answer, so results are in their original order."]
    assert found.passages == search([library], "cats sleep", k=3).passages
