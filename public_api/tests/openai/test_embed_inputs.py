"""POST /v1/embeddings with OpenAI's own client."""

import base64
import threading
from typing import Any

import httpx2
import numpy as np
import openai
import pytest

from chats.tests.rows import new_assistant
from engine.text.token_ids import text_of_tokens
from libraries.models import Embedding
from providers.budgets import reservations
from providers.models import OFFLINE_URL, BudgetReservation, EmbeddingModel, Provider, UsageRecord
from providers.tests.budgets import held, new_budget
from public_api.embeddings.embedder import MAX_TEXTS
from public_api.tests.live_server import sdk, until
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

DIMENSIONS = 64


@pytest.fixture
def new_embedding_model(provider: Provider) -> Any:
    def make(alias: str = "vectors", **fields: Any) -> EmbeddingModel:
        given = {"provider": provider, "upstream_id": alias, "dimensions": DIMENSIONS} | fields
        return EmbeddingModel.objects.create(alias=alias, **given)

    return make


def vectors(answer: Any) -> Any:
    return np.array([each.embedding for each in answer.data], dtype=np.float32)


def test_the_client_gets_the_same_vectors_in_either_form(client, new_embedding_model):
    """It asks for base64 unless told otherwise."""
    new_embedding_model()
    packed = client.embeddings.create(model="vectors", input=["One", "Two"])
    plain = client.embeddings.create(model="vectors", input=["One", "Two"], encoding_format="float")
    assert vectors(packed).shape == (2, DIMENSIONS)
    assert np.array_equal(vectors(packed), vectors(plain))
    assert np.allclose(np.linalg.norm(vectors(plain), axis=1), 1, atol=1e-6)
    told = plain.to_dict()
    assert (told["object"], told["model"]) == ("list", "vectors")
    assert [(each["object"], each["index"]) for each in told["data"]] == [
        ("embedding", 0),
        ("embedding", 1),
    ]


def test_base64_is_of_little_endian_floats(alice, address, new_embedding_model):
    new_embedding_model()
    answer = httpx2.post(
        f"{address}/v1/embeddings",
        json={"model": "vectors", "input": "One", "encoding_format": "base64"},
        headers={"authorization": f"Bearer {alice.new_key(scopes=['public'])[1]}"},
        trust_env=False,
    )
    (each,) = answer.json()["data"]
    assert len(base64.b64decode(each["embedding"])) == 4 * DIMENSIONS


def test_token_ids_are_texts(client, new_embedding_model, fake_provider):
    """As LangChain sends them."""
    new_embedding_model(encoding="cl100k_base")
    text = vectors(client.embeddings.create(model="vectors", input="Hello world!"))
    tokens = [9906, 1917, 0]
    for given in (tokens, [tokens]):
        answer = client.embeddings.create(model="vectors", input=given)
        assert np.array_equal(vectors(answer), text)
    assert fake_provider.requests("Hello world!")


def test_shorter_vectors_are_the_beginning_of_the_long_ones(client, new_embedding_model):
    new_embedding_model()
    long = vectors(client.embeddings.create(model="vectors", input="One"))[0]
    short = vectors(client.embeddings.create(model="vectors", input="One", dimensions=8))[0]
    assert short.shape == (8,)
    assert np.allclose(short, long[:8] / np.linalg.norm(long[:8]), atol=1e-6)


def test_without_a_provider_words_are_hashed(client, db):
    offline = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    EmbeddingModel.objects.create(
        provider=offline, alias="offline", upstream_id="offline", dimensions=512
    )
    answer = client.embeddings.create(model="offline", input=["a river", "the river"])
    one, other = vectors(answer)
    assert one @ other > 0
    assert answer.usage.prompt_tokens > 0


def test_usage_is_told_and_accounted_and_nothing_is_kept(client, alice, new_embedding_model):
    new_embedding_model(price_in=1)
    answer = client.embeddings.create(model="vectors", input=["text"] * 300, user="visitor")
    records = list(UsageRecord.objects.all())
    assert sum(record.prompt_tokens for record in records) == answer.usage.prompt_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens
    (record,) = records
    assert (record.kind, record.model, record.outcome) == ("embedding", "vectors", "ok")
    assert record.user_id == alice.user.pk
    assert record.api_key_id is not None
    assert record.guest_id == f"{alice.user.pk}:visitor"
    assert record.cost > 0
    assert not Embedding.objects.exists()


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"input": "x"}, "model", "missing_required_parameter"),
        ({"model": "vectors"}, "input", "missing_required_parameter"),
        ({"model": "vectors", "input": None}, "input", "missing_required_parameter"),
        ({"model": "vectors", "input": ""}, "input", "empty_array"),
        ({"model": "vectors", "input": []}, "input", "empty_array"),
        ({"model": "vectors", "input": ["a", ""]}, "input", "empty_array"),
        ({"model": "vectors", "input": [[]]}, "input", "empty_array"),
        ({"model": "vectors", "input": 1}, "input", "invalid_type"),
        ({"model": "vectors", "input": ["a", 1]}, "input", "invalid_type"),
        ({"model": "vectors", "input": [[1], "a"]}, "input", "invalid_type"),
        ({"model": "vectors", "input": [True]}, "input", "invalid_type"),
        ({"model": "vectors", "input": [1.5]}, "input", "invalid_type"),
        ({"model": "vectors", "input": {"a": 1}}, "input", "invalid_type"),
        ({"model": "vectors", "input": ["a"] * (MAX_TEXTS + 1)}, "input", "above_max_length"),
        ({"model": "vectors", "input": [10**9]}, "input[0]", "invalid_value"),
        ({"model": "vectors", "input": [[1], [-1]]}, "input[1]", "invalid_value"),
        ({"model": "vectors", "input": "x", "dimensions": 65}, "dimensions", "invalid_value"),
        (
            {"model": "vectors", "input": "x", "dimensions": 0},
            "dimensions",
            "integer_below_min_value",
        ),
        ({"model": "vectors", "input": "x", "dimensions": "8"}, "dimensions", "invalid_type"),
        (
            {"model": "vectors", "input": "x", "encoding_format": "int8"},
            "encoding_format",
            "invalid_value",
        ),
    ],
    ids=range(20),
)
def test_a_bad_body_names_its_field(alice, new_embedding_model, body, param, code):
    new_embedding_model()
    answer = api(key=alice.new_key(scopes=["public"])[1]).post("/v1/embeddings", body)
    assert answer.status_code == 400, answer.content
    told = answer.json()["error"]
    assert (told["param"], told["code"]) == (param, code)
    assert not UsageRecord.objects.exists()


def test_a_text_that_is_too_long_says_how_long(client, new_embedding_model):
    new_embedding_model(max_input_tokens=10)
    client.embeddings.create(model="vectors", input="word " * 9)
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="vectors", input=["short", "word " * 500])
    assert caught.value.param == "input[1]"
    assert "500" in caught.value.message or "501" in caught.value.message


def test_a_model_that_is_none_is_404(client, alice, new_model, new_embedding_model, address):
    new_model("fake-model")
    new_embedding_model("off", enabled=False)
    new_embedding_model()
    for name in ("nonsense", "off", "fake-model", "assistant:ada", "auto"):
        with pytest.raises(openai.NotFoundError) as caught:
            client.embeddings.create(model=name, input="x")
        assert caught.value.code == "model_not_found"
    _, bound = alice.new_key(scopes=["public"], assistant_id=new_assistant(alice).pk)
    with sdk(address, bound) as client_tools, pytest.raises(openai.PermissionDeniedError):
        client_tools.embeddings.create(model="vectors", input="x")


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("fake-429", openai.RateLimitError),
        ("fake-500", openai.InternalServerError),
        ("fake-400", openai.BadRequestError),
    ],
)
def test_a_provider_that_fails(client, new_embedding_model, settings, name, raised):
    settings.AMBER_PROVIDER_RETRIES = 0
    new_embedding_model(name)
    with pytest.raises(raised):
        client.embeddings.create(model=name, input="x")
    assert UsageRecord.objects.get().outcome.startswith("provider_")


def test_budgets_hold_and_are_settled(client, alice, new_embedding_model):
    reservations.forget_absence()
    budget = new_budget(alice, 1_000)
    new_embedding_model()
    client.embeddings.create(model="vectors", input="x" * 300)
    used, reserved = held(budget)
    assert used > 0
    assert reserved == 0
    with pytest.raises(openai.RateLimitError) as caught:
        client.embeddings.create(model="vectors", input="x" * 4_000)
    assert caught.value.code == "insufficient_quota"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert held(budget) == (used, 0)


def test_a_client_that_leaves_gives_back_what_was_held(client, alice, new_embedding_model):
    reservations.forget_absence()
    new_budget(alice, 1_000)
    new_embedding_model("fake-hang-first")
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=1).embeddings.create(model="fake-hang-first", input="x")
    until(lambda: not BudgetReservation.objects.exists())
    assert UsageRecord.objects.get().outcome == "cancelled"


def test_many_at_once_need_no_thread_each(client, new_embedding_model, settings):
    new_embedding_model()
    found: list[Any] = []

    def embed() -> None:
        found.append(vectors(client.embeddings.create(model="vectors", input="x")))

    threads = [threading.Thread(target=embed) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8


def test_token_ids_need_no_tokenizer():
    assert text_of_tokens([9906, 1917, 0], "cl100k_base") == "Hello world!"
