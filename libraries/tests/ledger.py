"""Make libraries and documents for tests, and a worker that works when it is told to."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from itertools import count
from typing import Any

from django.db import connections
from django.utils import timezone

from amber.lib.workers.worker import Worker
from libraries.chunking.chunker import chunk
from libraries.ingestion import indexing, intake
from libraries.ingestion.intake import DocumentSource
from libraries.models import Document, DocumentChunk, Library
from providers.models import EmbeddingModel, Provider
from tests.fixtures.personas import Persona

ALL = "/api/v1/libraries/"
_numbers = count(1)


def new_model(upstream_id: str = "offline", *, base_url: str = "offline:", **fields: Any) -> Any:
    """An embedding model; by default the built-in one, with short vectors."""
    provider, _ = Provider.objects.get_or_create(name=base_url, defaults={"base_url": base_url})
    fields = {"alias": f"embedder-{next(_numbers)}", "dimensions": 64} | fields
    return EmbeddingModel.objects.create(provider=provider, upstream_id=upstream_id, **fields)


def new_library(persona: Persona, **fields: Any) -> Any:
    model = fields.pop("embedding_model", None) or new_model()
    fields = {"name": "Manuals", "chunk_tokens": 60, "overlap_tokens": 10} | fields
    return Library.objects.create(
        organization=persona.organization, user=persona.user, embedding_model=model, **fields
    )


def text_of(number: int, sentences: int = 40) -> str:
    """A text of its own, of several chunks."""
    return "\n\n".join(
        f"Part {number}-{n}: the valve of pump {number * 1000 + n} opens to the left."
        for n in range(sentences)
    )


def given(text: str, **fields: Any) -> DocumentSource:
    return DocumentSource(
        **{"name": "notes.txt", "mime_type": "text/plain"} | fields, data=text.encode()
    )


def new_document(library: Library, text: str = "", **fields: Any) -> Any:
    return intake.put(library, given(text or text_of(next(_numbers)), **fields)).document


def ingest(seconds: float = 60) -> None:
    """A worker of this process takes all that waits."""
    indexing.index_waiting(Worker("w1"), seconds=seconds)


def chunks_of(document: Document, model: EmbeddingModel | None = None) -> list[DocumentChunk]:
    model_id = model.pk if model else document.library.embedding_model_id
    rows = DocumentChunk.objects.filter(document=document, embedding_model=model_id)
    return list(rows.order_by("order"))


def assert_ready(document: Any, text: str) -> None:
    """Ready, with exactly the chunks its text has, each with a vector and tokens to search."""
    document.refresh_from_db()
    assert (document.status, document.stage) == ("ready", "ready"), document.error
    assert document.text == text
    assert_chunked(document)


def assert_chunked(document: Any, model: EmbeddingModel | None = None) -> None:
    library = Library.objects.get(pk=document.library_id)
    expected = chunk(
        document.text,
        size_tokens=library.chunk_tokens,
        overlap_tokens=library.overlap_tokens,
        pages=document.pages,
        mime_type=document.mime_type,
    )
    rows = chunks_of(document, model)
    places = [(row.order, row.start, row.end, row.page, row.heading, row.tokens) for row in rows]
    assert places == [(c.order, c.start, c.end, c.page, c.heading, c.tokens) for c in expected]
    for row in rows:
        assert row.content == document.text[row.start : row.end]
        assert row.vectorized and row.vector is not None and row.search
        assert row.library_id == document.library_id
        assert row.organization_id == document.organization_id


def assert_counted(library: Any) -> None:
    """Assert that `chunk_count` is how many chunks search looks at."""
    library.refresh_from_db()
    rows = DocumentChunk.objects.filter(library=library, embedding_model=library.embedding_model_id)
    assert library.chunk_count == rows.count()


def expire(document: Any) -> None:
    """Let the document's lease run out, as if its worker had been silent."""
    past = timezone.now() - timedelta(seconds=1)
    Document.objects.filter(pk=document.pk).update(lease_until=past)


class Killed(BaseException):
    """Stands for the kill of a worker: nothing may catch it."""


def kill() -> None:
    raise Killed


@contextmanager
def struck(
    monkeypatch: Any, target: str, act: Callable[[], object], *, call: int = 1
) -> Iterator[None]:
    """Let `act` happen before a call of this function, as if another process did it."""
    module, _, name = target.rpartition(".")
    real = getattr(import_module(module), name)
    calls = count(1)

    def strike(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            act() if act is kill else beside(act)
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(target, strike)
        yield


def beside(act: Callable[[], object]) -> None:
    """Call `act` with a database connection of its own. Raises what it raises."""

    def run() -> None:
        try:
            act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result(30)
