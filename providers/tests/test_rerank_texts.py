"""The operator's reranker: both forms, its order and scores, and what happens without it."""

import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from providers import reranker
from providers.reranker import RerankError, order_for_turn
from tests.fakes.reranker import FakeReranker, by_length

TEXTS = ["alpha", "beta", "gamma"]


@pytest.fixture
def service(settings: Any) -> Iterator[FakeReranker]:
    with FakeReranker() as running:
        settings.AMBER_RERANK_URL = running.url
        yield running


def test_without_a_model_in_the_form_of_text_embeddings_inference(service):
    assert [place for place, _ in reranker.rerank("q", TEXTS)] == [1, 0, 2]
    assert service.asked == [({"query": "q", "texts": TEXTS, "truncate": True}, None)]


def test_with_a_model_in_the_form_of_jina_and_cohere(service, settings):
    settings.AMBER_RERANK_MODEL = "reranker-v2"
    settings.AMBER_RERANK_API_KEY = "sesame"
    assert reranker.rerank("q", TEXTS) == [(1, -4.0), (0, -5.0), (2, -5.0)]
    body, authorization = service.asked[0]
    assert body == {"model": "reranker-v2", "query": "q", "documents": TEXTS, "top_n": 3}
    assert authorization == "Bearer sesame"


def test_texts_it_leaves_out_come_last(service):
    service.answer = lambda body: [{"index": 2, "score": 0.5}]
    assert [place for place, _ in reranker.rerank("q", TEXTS)] == [2, 0, 1]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "text",
        {"results": None},
        [{"index": 3, "score": 1}],
        [{"index": -1, "score": 1}],
        [{"index": 0}],
        [{"score": 1}],
        [{"index": 0, "score": "high"}],
        [{"index": 0, "score": float("nan")}],
        [[0, 1]],
    ],
    ids=str,
)
def test_an_answer_that_makes_no_sense_is_no_order(service, answer):
    service.answer = lambda body: answer
    with pytest.raises(RerankError):
        reranker.rerank("q", TEXTS)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 302])
def test_a_refusal_is_no_order(service, status):
    service.status = status
    with pytest.raises(RerankError):
        reranker.rerank("q", TEXTS)


def test_a_service_that_is_away_is_no_order(settings):
    with FakeReranker() as gone:
        settings.AMBER_RERANK_URL = gone.url
    with pytest.raises(RerankError):
        reranker.rerank("q", TEXTS)


# -- In a turn ----------------------------------------------------------------------------------------

CANDIDATES = dict(zip("abc", TEXTS, strict=True))


def test_a_turn_does_not_ask_it_unless_it_may_wait(service):
    assert order_for_turn("q", CANDIDATES) == ["a", "b", "c"]
    assert service.asked == []


def test_a_turn_that_may_wait_has_its_order(service, settings):
    settings.AMBER_RERANK_TURN_SECONDS = 2.0
    assert order_for_turn("q", CANDIDATES) == ["b", "a", "c"]


def test_a_single_candidate_needs_no_order(service, settings):
    settings.AMBER_RERANK_TURN_SECONDS = 2.0
    assert order_for_turn("q", {"a": "alpha"}) == ["a"]
    assert service.asked == []


def test_what_it_is_not_shown_stays_behind(service, settings):
    settings.AMBER_RERANK_TURN_SECONDS = 2.0
    many = {number: "x" * (60 - number) for number in range(50)}
    order = order_for_turn("q", many)
    assert order == [*range(39, -1, -1), *range(40, 50)]


def test_a_turn_goes_on_without_an_order_that_comes_too_late(service, settings):
    settings.AMBER_RERANK_TURN_SECONDS = 0.2
    released = Event()
    service.answer = lambda body: released.wait(5) and by_length(body)
    began = time.monotonic()
    assert order_for_turn("q", CANDIDATES) == ["a", "b", "c"]
    assert time.monotonic() - began < 2
    released.set()


def test_a_turn_goes_on_without_an_order_that_makes_no_sense(service, settings):
    settings.AMBER_RERANK_TURN_SECONDS = 2.0
    service.answer = lambda body: {"results": "none"}
    assert order_for_turn("q", CANDIDATES) == ["a", "b", "c"]
