from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from amber.lib.secrets import decrypt_column, encrypt_column
from providers import services
from providers.environment import OPENAI_MODEL, OPENAI_URL
from providers.models import EmbeddingModel, LanguageModel, Provider
from providers.registry import resolve
from providers.services import bootstrap_from_environment

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(monkeypatch):
    """Return a function that sets these variables and no others, then bootstraps."""

    def say(**values):
        names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AMBER_MODEL", "AMBER_VISION_MODEL")
        for name in (*names, "AMBER_EMBEDDING_MODEL", "AMBER_EMBEDDING_DIMENSIONS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        bootstrap_from_environment()

    return say


def defaults() -> tuple[str, str]:
    return (
        LanguageModel.objects.get(default=True).alias,
        EmbeddingModel.objects.get(default=True).alias,
    )


def state() -> list[list[tuple[Any, ...]]]:
    fields = ("pk", "alias", "default", "enabled", "updated_at")
    return [
        sorted(LanguageModel.objects.values_list(*fields)),
        sorted(EmbeddingModel.objects.values_list(*fields)),
        sorted(Provider.objects.values_list("pk", "name", "base_url", "api_key_sealed")),
    ]


def test_without_a_key_the_offline_models_answer(said):
    said()
    assert defaults() == ("offline", "offline-embedding")
    assert Provider.objects.get().is_offline


def test_a_second_start_changes_nothing(said):
    said()
    before = state()
    said()
    assert state() == before


def test_a_second_start_with_a_provider_changes_nothing(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="m", AMBER_VISION_MODEL="v")
    before = state()
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="m", AMBER_VISION_MODEL="v")
    assert state() == before


def test_a_key_alone_means_openai(said):
    said(OPENAI_API_KEY="sk-1")
    assert defaults() == (OPENAI_MODEL, "text-embedding-3-small")
    provider = Provider.objects.get()
    assert provider.base_url == OPENAI_URL
    assert "sk-1" not in provider.api_key_sealed + provider.environment_sealed
    assert decrypt_column(provider, "api_key") == "sk-1"


def test_an_address_alone_is_enough(said):
    """Ollama needs no key; that it embeds is not known unless the environment says so."""
    said(OPENAI_BASE_URL="http://localhost:11434/v1/", AMBER_MODEL="llama3.2")
    assert defaults() == ("llama3.2", "offline-embedding")
    provider = LanguageModel.objects.get(default=True).provider
    assert provider.base_url == "http://localhost:11434/v1"
    assert decrypt_column(provider, "api_key") == ""


def test_models_and_dimensions_are_as_said(said):
    said(
        OPENAI_API_KEY="sk-1",
        AMBER_MODEL="text",
        AMBER_VISION_MODEL="eyes",
        AMBER_EMBEDDING_MODEL="vectors",
        AMBER_EMBEDDING_DIMENSIONS="256",
    )
    assert defaults() == ("text", "vectors")
    assert EmbeddingModel.objects.get(default=True).dimensions == 256
    assert resolve("", wants_vision=False).row.alias == "text"
    assert resolve("auto", wants_vision=True).row.alias == "eyes"
    assert LanguageModel.objects.get(alias="eyes").vision


def test_one_model_may_both_read_and_see(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="both", AMBER_VISION_MODEL="both")
    model = LanguageModel.objects.get()
    assert (model.default, model.default_vision, model.vision) == (True, True, True)


def test_a_provider_configured_later_takes_over_and_offline_stays(said):
    said()
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="real", AMBER_EMBEDDING_MODEL="vectors")
    assert defaults() == ("real", "vectors")
    assert LanguageModel.objects.get(alias="offline").enabled
    assert EmbeddingModel.objects.filter(alias="offline-embedding").exists()


def test_what_operators_changed_stays(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="real")
    Provider.objects.update(base_url="https://mirror.example/v1", name="Mirror")
    chosen = LanguageModel.objects.create(
        provider=Provider.objects.get(), alias="chosen", upstream_id="chosen"
    )
    services.make_default(chosen)
    LanguageModel.objects.filter(alias="real").update(context_tokens=9_000, enabled=False)
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="real")
    assert defaults()[0] == "chosen"
    assert Provider.objects.get().base_url == "https://mirror.example/v1"
    real = LanguageModel.objects.get(alias="real")
    assert (real.context_tokens, real.enabled) == (9_000, False)


def test_a_default_chosen_by_an_operator_outlives_a_new_model_in_the_environment(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="real")
    chosen = LanguageModel.objects.create(
        provider=Provider.objects.get(), alias="chosen", upstream_id="chosen"
    )
    services.make_default(chosen)
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="newer")
    assert defaults()[0] == "chosen"
    assert LanguageModel.objects.filter(alias="newer").exists()


def test_a_changed_value_is_applied(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="old")
    said(OPENAI_API_KEY="sk-2", AMBER_MODEL="new")
    assert defaults()[0] == "new"
    assert decrypt_column(Provider.objects.get(), "api_key") == "sk-2"


def test_a_key_set_in_the_admin_outlives_a_changed_model(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="old")
    provider = Provider.objects.get()
    encrypt_column(provider, "api_key", "from-the-admin")
    provider.save()
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="new")
    assert decrypt_column(Provider.objects.get(), "api_key") == "from-the-admin"


def test_an_unset_environment_takes_nothing_away(said):
    said(OPENAI_API_KEY="sk-1", AMBER_MODEL="real")
    said()
    assert defaults() == ("real", "text-embedding-3-small")


def test_vectors_of_another_length_are_another_model(said):
    base = {"OPENAI_API_KEY": "sk-1", "AMBER_EMBEDDING_MODEL": "vectors"}
    said(**base, AMBER_EMBEDDING_DIMENSIONS="256")
    said(**base, AMBER_EMBEDDING_DIMENSIONS="512")
    lengths = dict(EmbeddingModel.objects.values_list("alias", "dimensions"))
    assert lengths == {"vectors": 256, "vectors-512": 512}
    assert defaults()[1] == "vectors-512"


def test_after_a_lost_key_ring_the_environment_counts_again(said, settings):
    said(OPENAI_API_KEY="sk-1")
    from tests.fixtures.secret_keys import new_secret_key

    settings.AMBER_SECRET_KEYS = (new_secret_key(),)
    said(OPENAI_API_KEY="sk-1")
    assert decrypt_column(Provider.objects.get(), "api_key") == "sk-1"


def test_a_hand_made_provider_of_that_name_is_left_alone(said):
    Provider.objects.create(name="environment", base_url="https://hand.example/v1")
    said(OPENAI_API_KEY="sk-1")
    assert Provider.objects.get(name="environment").base_url == "https://hand.example/v1"
    assert Provider.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMBER_EMBEDDING_DIMENSIONS", "many"),
        ("AMBER_EMBEDDING_DIMENSIONS", "4001"),
        ("OPENAI_BASE_URL", "localhost:11434"),
        ("AMBER_MODEL", "auto"),
        ("AMBER_MODEL", "assistant:demo"),
        ("AMBER_VISION_MODEL", "v" * 121),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_made(said, name, value):
    with pytest.raises(ImproperlyConfigured, match=name):
        said(OPENAI_API_KEY="sk-1", **{name: value})
    assert not Provider.objects.exists()


def test_a_known_address_tells_how_to_speak(said):
    said(OPENAI_API_KEY="sk-1", OPENAI_BASE_URL="https://api.anthropic.com/v1", AMBER_MODEL="c")
    assert Provider.objects.exclude(base_url="offline:").get().preset == "anthropic"
    assert LanguageModel.objects.get(alias="c").tool_dialect == "anthropic"
