import pytest

from amber.lib.errors import Unavailable
from amber.lib.secrets import encrypt_column
from engine.provider.embedding import OfflineEmbedder, OpenAIEmbedder
from engine.provider.model import ModelProfile
from engine.provider.offline import OfflineModel
from engine.provider.openai_model import OpenAIModel
from providers import registry
from providers.models import LanguageModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def models(new_model):
    return {
        "text": new_model("text", default=True),
        "eyes": new_model("eyes", vision=True, default_vision=True),
        "other": new_model("other"),
        "off": new_model("off", enabled=False),
    }


@pytest.mark.parametrize(
    ("alias", "wants_vision", "expected"),
    [
        ("", False, "text"),
        ("auto", False, "text"),
        ("auto", True, "eyes"),
        ("", True, "eyes"),
        ("other", False, "other"),
        ("other", True, "other"),
    ],
)
def test_finds_what_the_alias_means(models, alias, wants_vision, expected):
    resolved = registry.resolve(alias, wants_vision=wants_vision)
    assert (resolved.row.alias, resolved.reason) == (expected, "")


@pytest.mark.parametrize("alias", ["off", "gone"])
@pytest.mark.parametrize(("wants_vision", "expected"), [(False, "text"), (True, "eyes")])
def test_what_is_disabled_or_gone_runs_as_auto_and_says_so(models, alias, wants_vision, expected):
    resolved = registry.resolve(alias, wants_vision=wants_vision)
    assert resolved.row.alias == expected
    assert alias in resolved.reason


def test_takes_one_query(models, django_assert_num_queries):
    with django_assert_num_queries(1):
        registry.resolve("auto", wants_vision=True).row.provider.base_url  # noqa: B018


def test_without_a_default_vision_model_the_default_model_answers(new_model):
    new_model("text", default=True)
    assert registry.resolve("auto", wants_vision=True).row.alias == "text"


def test_without_a_default_the_oldest_enabled_model_answers(new_model):
    new_model("disabled", default=True, enabled=False)
    new_model("first")
    new_model("second")
    assert registry.resolve("auto", wants_vision=False).row.alias == "first"


def test_without_any_model_it_says_so(new_model):
    new_model("disabled", default=True, enabled=False)
    with pytest.raises(Unavailable, match="No language model"):
        registry.resolve("auto", wants_vision=False)


@pytest.mark.parametrize(
    ("alias", "known"),
    [("", True), ("auto", True), ("text", True), ("off", False), ("gone", False), ("TEXT", False)],
)
def test_knows_which_aliases_may_be_written(models, alias, known):
    assert registry.is_known_alias(alias) is known


def test_an_engine_model_speaks_to_its_provider_with_its_key(provider, new_model):
    encrypt_column(provider, "api_key", "sk-secret")
    provider.save()
    new_model(
        "m",
        context_tokens=1_000,
        max_output_tokens=100,
        vision=True,
        encoding="cl100k_base",
        tool_dialect="functions",
        system_position="last",
    )
    model = registry.engine_model(registry.resolve("m", wants_vision=False).row)
    assert isinstance(model, OpenAIModel)
    assert model.profile == ModelProfile(
        upstream_id="m-upstream",
        context_tokens=1_000,
        max_output_tokens=100,
        vision=True,
        encoding="cl100k_base",
        tool_dialect="functions",
        system_position="last",
        sender=model.profile.sender,
    )
    assert model.profile.sender
    assert model._endpoint.api_key == "sk-secret"
    assert model._endpoint.base_url == provider.base_url


def test_offline_rows_need_no_provider(provider, new_model, new_embedding_model):
    provider.base_url = "offline:"
    provider.save()
    assert isinstance(registry.engine_model(new_model("m")), OfflineModel)
    embedder = registry.engine_embedder(new_embedding_model("e", dimensions=64))
    assert isinstance(embedder, OfflineEmbedder)
    assert embedder.dimensions == 64


def test_an_engine_embedder_speaks_to_its_provider(new_embedding_model):
    embedder = registry.engine_embedder(new_embedding_model("e", dimensions=64))
    assert isinstance(embedder, OpenAIEmbedder)
    assert (embedder.model_id, embedder.dimensions) == ("e-upstream", 64)


def test_new_libraries_use_the_default_embedding_model(new_embedding_model):
    new_embedding_model("first")
    new_embedding_model("chosen", default=True)
    assert registry.default_embedding_model().alias == "chosen"


def test_without_an_embedding_model_it_says_so(new_embedding_model):
    new_embedding_model("off", default=True, enabled=False)
    with pytest.raises(Unavailable, match="No embedding model"):
        registry.default_embedding_model()


def test_what_operators_change_counts_at_once(models):
    assert registry.resolve("other", wants_vision=False).row.alias == "other"
    LanguageModel.objects.filter(alias="other").update(enabled=False)
    assert registry.resolve("other", wants_vision=False).reason
