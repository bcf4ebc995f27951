"""Ingest workers that are killed, paused or stopped: each document ends with exactly its chunks."""

import secrets
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from libraries.chunking.chunker import chunk
from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Client
from tests.e2e.kit.halting import MOMENTS, Halt
from tests.e2e.kit.platform import Platform

pytestmark = pytest.mark.e2e

QUICK_LEASE = {"AMBER_LEASE_SECONDS": "2", "AMBER_SWEEP_SECONDS": "0.3"}
SIZES = {"chunk_tokens": 60, "overlap_tokens": 10}


def text_of(number: int, sentences: int = 200) -> str:
    return "\n\n".join(
        f"Part {number}-{n}: the valve of pump {secrets.token_hex(4)} opens to the left."
        for n in range(sentences)
    )


def new_library(who: Client, model: str = "fake-embedding") -> str:
    body = {"name": "Manuals", "embedding_model": model, **SIZES}
    return str(who.post("libraries/", body).body["id"])


def give(who: Client, library_id: str, text: str) -> str:
    answer = who.post(f"libraries/{library_id}/documents/", {"name": "n.txt", "text": text})
    assert answer.status == 201
    return str(answer.body["id"])


def document(who: Client, document_id: str) -> dict[str, Any]:
    return dict(who.get(f"documents/{document_id}/").body)


def wait_until_ready(platform: Platform, who: Client, *document_ids: str) -> None:
    for each in document_ids:
        platform.wait_for(
            lambda each=each: document(who, each)["status"] not in ("queued", "running"), "an end"
        )
        shown = document(who, each)
        assert shown["status"] == "ready", shown["error"]


def chunks(who: Client, document_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    path = f"documents/{document_id}/chunks/?limit=200"
    while path:
        page = who.get(path).body
        found += page["results"]
        path = "/api/v1/" + page["next"].partition("/api/v1/")[2] if page["next"] else ""
    return found


def assert_exactly_chunked(
    platform: Platform, who: Client, library_id: str, texts: dict[str, str]
) -> None:
    """Each text's own chunks, each once, all with vectors, all counted."""
    total = 0
    for document_id, text in texts.items():
        expected = chunk(text, size_tokens=60, overlap_tokens=10)
        shown = chunks(who, document_id)
        assert [(c["order"], c["start"], c["end"]) for c in shown] == [
            (c.order, c.start, c.end) for c in expected
        ]
        assert all(c["content"] == text[c["start"] : c["end"]] for c in shown)
        assert all(c["vectorized"] for c in shown)
        total += len(expected)
    counted = "SELECT count(*), count(vector), count(search) FROM libraries_documentchunk WHERE library_id = %s"
    assert platform.query(counted, library_id) == [(total, total, total)]
    assert who.get(f"libraries/{library_id}/").body["chunk_count"] == total


@pytest.fixture
def halt(running_platform: Platform) -> Halt:
    """Of `halting`."""
    folder = running_platform.home / "halt"
    folder.mkdir(exist_ok=True)
    halt = Halt(folder)
    halt.disarm()
    return halt


def settings_of(halt: Halt) -> dict[str, str]:
    return {
        **QUICK_LEASE,
        "E2E_HALT_FOLDER": str(halt.armed.parent),
        "AMBER_INGEST_CONCURRENCY": "1",
    }


@pytest.fixture
def halting(running_platform: Platform, halt: Halt) -> Iterator[Platform]:
    """With an ingest worker that can be halted, and stays for the next test that wants one."""
    running_platform.restore(ingest=settings_of(halt))
    with leaves_no_trace(running_platform):
        yield running_platform


@pytest.fixture
def stopped(running_platform: Platform) -> Iterator[Platform]:
    """Without an ingest worker."""
    running_platform.restore(ingest=None)
    with leaves_no_trace(running_platform):
        yield running_platform


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_workers_document_has_exactly_its_chunks(
    halting, halt, ann, fake_provider, moment
):
    library, text = new_library(ann), text_of(1)
    before = fake_provider.stats()["embed_texts"]
    halt.arm(moment)
    document_id = give(ann, library, text)
    halting.wait_for(halt.halted.exists, moment)
    if moment != "published":
        rows = "SELECT count(*) FROM libraries_documentchunk WHERE library_id = %s"
        assert halting.query(rows, library) == [(0,)], "nothing half-visible"
    halting.ingest_worker.kill()
    halt.disarm()
    halting.start_member("ingest", **settings_of(halt))
    wait_until_ready(halting, ann, document_id)
    assert_exactly_chunked(halting, ann, library, {document_id: text})
    attempts = 1 if moment == "published" else 2
    assert document(ann, document_id)["attempt"] == attempts
    paid = fake_provider.stats()["embed_texts"] - before
    assert paid == len(chunks(ann, document_id)), "no vector is paid for twice"


def test_many_documents_survive_many_kills(halting, halt, ann):
    library = new_library(ann)
    texts = {}
    worker = halting.ingest_worker
    halt.arm("embedding")
    for number in range(30):
        text = text_of(number, sentences=20)
        texts[give(ann, library, text)] = text
    halting.wait_for(halt.halted.exists, "embedding")
    worker.kill()
    halt.arm("publishing")
    worker = halting.start_member("ingest", **settings_of(halt))
    halting.wait_for(halt.halted.exists, "publishing")
    worker.kill()
    halt.disarm()
    halting.start_member("ingest", **settings_of(halt))
    wait_until_ready(halting, ann, *texts)
    assert_exactly_chunked(halting, ann, library, texts)


@pytest.mark.parametrize("moment", ["chunked", "publishing"])
def test_a_worker_that_was_only_slow_writes_nothing_more(halting, halt, ann, moment):
    """Paused for longer than its lease, as a machine is that sleeps; then it goes on."""
    library, text = new_library(ann), text_of(1)
    slow = halting.ingest_worker
    halt.arm(moment)
    document_id = give(ann, library, text)
    halting.wait_for(halt.halted.exists, moment)
    slow.process.send_signal(signal.SIGSTOP)
    try:
        halt.disarm()
        halting.start_member("ingest", **settings_of(halt))
        taken = "SELECT 1 FROM libraries_document WHERE id = %s AND fence > 1"
        halting.wait_for(lambda: halting.query(taken, document_id), "another claim")
        if moment == "chunked":
            wait_until_ready(halting, ann, document_id)
    finally:
        halt.halted.unlink()
        slow.process.send_signal(signal.SIGCONT)
    wait_until_ready(halting, ann, document_id)
    halting.stop_member(slow)
    assert_exactly_chunked(halting, ann, library, {document_id: text})


def test_documents_that_came_while_no_worker_was_there_are_found(stopped, ann):
    library = new_library(ann, "offline-embedding")
    texts = {}
    for number in range(5):
        text = text_of(number, sentences=5)
        texts[give(ann, library, text)] = text
    stopped.flush_redis()  # the rings are lost
    stopped.start_member("ingest")
    wait_until_ready(stopped, ann, *texts)
    assert_exactly_chunked(stopped, ann, library, texts)


def test_a_library_deleted_while_it_is_ingested_leaves_nothing(platform, ann):
    library = new_library(ann)
    for number in range(20):
        give(ann, library, text_of(number, sentences=50))
    assert ann.request("DELETE", f"libraries/{library}/").status == 204
    assert ann.get(f"libraries/{library}/").status == 404
    for table, column in (
        ("document", "library_id"),
        ("documentchunk", "library_id"),
        ("library", "id"),
    ):
        left = f"SELECT count(*) FROM libraries_{table} WHERE {column} = %s"
        platform.wait_for(
            lambda left=left: platform.query(left, library) == [(0,)], f"no {table} left"
        )
    kept, text = new_library(ann), text_of(1)
    document_id = give(ann, kept, text)
    wait_until_ready(platform, ann, document_id)
