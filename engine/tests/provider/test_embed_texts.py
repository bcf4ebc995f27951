import asyncio
import base64
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.provider.client import Endpoint, preload
from engine.provider.embedding import (
    MAX_BATCH_CHARS,
    Embedder,
    OfflineEmbedder,
    OpenAIEmbedder,
    batches,
)
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from tests.fakes.answers import vector
from tests.fixtures.provider import RunningProvider

HASTY = RetryPolicy(first_token_seconds=20, backoff_seconds=0.01)
IMPATIENT = RetryPolicy(first_token_seconds=0.4, backoff_seconds=0.01)
DIMENSIONS = 8


@pytest.fixture(autouse=True, scope="module")
def client_is_imported() -> None:
    """Half a second that would count against the first deadline."""
    preload()


def embedder_of(
    provider: RunningProvider, name: str = "fake-embedding", **more: Any
) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        name,
        DIMENSIONS,
        Endpoint(provider.base_url, provider.api_key),
        retry_policy=IMPATIENT if "hang" in name else HASTY,
        **more,
    )


def embedded(embedder: Embedder, texts: list[str]) -> Any:
    return asyncio.run(embedder.embed(texts))


def test_vectors_come_in_the_order_of_the_texts(fake_provider: RunningProvider) -> None:
    used: list[Usage] = []
    texts = [f"text {i}" for i in range(300)]
    vectors = embedded(embedder_of(fake_provider, on_usage=used.append), texts)

    assert vectors.shape == (300, DIMENSIONS)
    assert vectors.dtype == np.float32
    expected = np.stack([vector(text, DIMENSIONS, "hash") for text in texts])
    assert np.allclose(vectors, expected, atol=1e-6)
    assert len(used) == 3
    assert all(usage.prompt_tokens > 0 for usage in used)


def test_no_texts_no_call(fake_provider: RunningProvider) -> None:
    before = fake_provider.stats()["embed_requests"]
    assert embedded(embedder_of(fake_provider), []).shape == (0, DIMENSIONS)
    assert fake_provider.stats()["embed_requests"] == before


def test_operators_are_told_what_the_provider_said(fake_provider: RunningProvider) -> None:
    with capture_logs() as log, pytest.raises(ProviderError) as caught:
        embedded(embedder_of(fake_provider, "fake-401"), ["a"])
    (line,) = log
    assert (line["event"], line["model"], line["said"]) == (
        *("provider_failed", "fake-401"),
        "401 bad key",
    )
    assert "bad key" not in caught.value.message


def test_an_empty_text_is_embedded(fake_provider: RunningProvider) -> None:
    assert embedded(embedder_of(fake_provider), [""]).shape == (1, DIMENSIONS)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("fake-429", "provider_rate_limited"),
        ("fake-500", "provider_unavailable"),
        ("fake-401", "provider_auth"),
        ("fake-404", "provider_rejected"),
        ("fake-context-too-long", "context_too_long"),
        ("fake-hang-first", "provider_timeout"),
        ("fake-malformed-first", "provider_malformed"),
    ],
)
def test_a_fault_has_its_code(fake_provider: RunningProvider, name: str, code: str) -> None:
    with pytest.raises(ProviderError) as caught:
        embedded(embedder_of(fake_provider, name), ["a", "b"])
    assert caught.value.code == code


@pytest.mark.parametrize("field", ["dimensions", "encoding_format"])
def test_a_field_that_is_refused_is_left_out(fake_provider: RunningProvider, field: str) -> None:
    # The fake's own width is another one, so that without `dimensions` the size is wrong.
    embedder = embedder_of(fake_provider, f"fake-no-{field.replace('_', '-')}")
    if field == "dimensions":
        with pytest.raises(ProviderError) as caught:
            embedded(embedder, ["a"])
        assert "1536" in caught.value.message
    else:
        assert embedded(embedder, ["a"]).shape == (1, DIMENSIONS)
    assert field not in fake_provider.requests(contains=embedder.model_id)[-1]


def row(index: int, values: Any) -> dict[str, Any]:
    return {"index": index, "embedding": values}


ONES = base64.b64encode(np.ones(DIMENSIONS, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    "data",
    [
        [],
        [row(0, [1.0] * 7)],
        [row(0, [1.0] * 9)],
        [row(0, [0.0] * 8)],
        [row(0, ["a"] * 8)],
        [row(0, [[1.0] * 8])],
        [row(0, "no base64")],
        [row(0, "AAAAAAA=")],
        [row(0, ONES), row(1, ONES)],
        [{"embedding": ONES}],
        None,
        "rows",
    ],
)
def test_a_wrong_answer_is_malformed(data: Any) -> None:
    embedder = embedder_of(RunningProvider("http://127.0.0.1:1/v1"))
    with pytest.raises(ProviderError) as caught:
        embedder._vectors(orjson.dumps({"data": data}), 1)
    assert caught.value.code == "provider_malformed"


def test_rows_are_sorted_and_normalised() -> None:
    embedder = embedder_of(RunningProvider("http://127.0.0.1:1/v1"))
    body = orjson.dumps({"data": [row(1, [3.0] + [0.0] * 7), row(0, ONES)]})
    vectors = embedder._vectors(body, 2)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[1][0] == 1


@given(st.lists(st.text(max_size=5)), st.integers(1, 4), st.integers(1, 12))
def test_batches_keep_every_text(texts: list[str], most: int, chars: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.provider.embedding.MAX_BATCH_TEXTS", most)
        patch.setattr("engine.provider.embedding.MAX_BATCH_CHARS", chars)
        found = list(batches(texts))
    assert [text for batch in found for text in batch] == texts
    assert all(0 < len(batch) <= most for batch in found)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= chars for batch in found)


def test_a_text_longer_than_a_batch_goes_alone() -> None:
    long = "x" * (MAX_BATCH_CHARS + 1)
    assert list(batches(["a", long, "b"])) == [["a"], [long], ["b"]]


def test_offline_vectors_are_stable_and_normalised() -> None:
    vectors = embedded(OfflineEmbedder(), ["river stone", "", "塞纳河", "!!!"])
    assert vectors.shape == (4, 512)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert [int(i) for i in np.flatnonzero(embedded(OfflineEmbedder(16), ["river"])[0])] == [RIVER]
    assert embedded(OfflineEmbedder(), []).shape == (0, 512)


RIVER = 11
"""Where the word lies among 16 places: vectors in a database outlive a release."""


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Where does the Nile flow?", 0),
        ("How do I reset my password?", 1),
        ("vectors and indexing", 2),
        ("巴黎的天气", 3),
        ("ＰＡＳＳＷＯＲＤ", 1),
    ],
)
def test_offline_vectors_find_what_shares_words(question: str, best: int) -> None:
    texts = [
        "The Nile flows through Africa to the sea.",
        "To reset the password, open the settings of your account.",
        "A vector index makes search fast.",
        "今天巴黎天气很好",
    ]
    vectors = embedded(OfflineEmbedder(), [question, *texts])
    assert int(np.argmax(vectors[1:] @ vectors[0])) == best
