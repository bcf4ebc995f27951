"""The operator's reranker: both forms, its order and scores, and what happens without it."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from libraries.retrieval import rerank
from libraries.retrieval.rerank import RerankError
from libraries.tests.ledger import new_library
from libraries.tests.shelf import search, shelve

TEXTS = ["alpha", "beta", "gamma"]


class Service:
    """Answers as it is told; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], str | None]] = []
        self.status = 200
        self.answer: Callable[[dict[str, Any]], Any] = by_length
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append((body, self.headers["Authorization"]))
                said = json.dumps(service.answer(body)).encode()
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/rerank"

    def __enter__(self) -> "Service":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def by_length(body: dict[str, Any]) -> Any:
    """The shortest text first, in the form of whoever asked."""
    if "texts" in body:
        return [{"index": n, "score": -len(text)} for n, text in enumerate(body["texts"])]
    texts = body["documents"]
    return {"results": [{"index": n, "relevance_score": -len(t)} for n, t in enumerate(texts)]}


@pytest.fixture
def service(settings: Any) -> Iterator[Service]:
    with Service() as running:
        settings.AMBER_RERANK_URL = running.url
        yield running


def test_without_a_model_in_the_form_of_text_embeddings_inference(service):
    assert [place for place, _ in rerank.rerank("q", TEXTS)] == [1, 0, 2]
    assert service.asked == [({"query": "q", "texts": TEXTS, "truncate": True}, None)]


def test_with_a_model_in_the_form_of_jina_and_cohere(service, settings):
    settings.AMBER_RERANK_MODEL = "reranker-v2"
    settings.AMBER_RERANK_API_KEY = "sesame"
    assert rerank.rerank("q", TEXTS) == [(1, -4.0), (0, -5.0), (2, -5.0)]
    body, authorization = service.asked[0]
    assert body == {"model": "reranker-v2", "query": "q", "documents": TEXTS, "top_n": 3}
    assert authorization == "Bearer sesame"


def test_texts_it_leaves_out_come_last(service):
    service.answer = lambda body: [{"index": 2, "score": 0.5}]
    assert [place for place, _ in rerank.rerank("q", TEXTS)] == [2, 0, 1]


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
        rerank.rerank("q", TEXTS)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 302])
def test_a_refusal_is_no_order(service, status):
    service.status = status
    with pytest.raises(RerankError):
        rerank.rerank("q", TEXTS)


def test_a_service_that_is_away_is_no_order(settings):
    with Service() as gone:
        settings.AMBER_RERANK_URL = gone.url
    with pytest.raises(RerankError):
        rerank.rerank("q", TEXTS)


# -- In a search --------------------------------------------------------------------------------------


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
