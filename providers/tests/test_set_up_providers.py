"""Set a provider up as an operator does: by a preset, its models, and a test that asks for real."""

from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts.models import User
from providers import keys, services
from providers.known_models import NamedModel, read_entry
from providers.models import EmbeddingModel, LanguageModel, Provider
from providers.presets import PRESETS
from tests.fixtures_provider import RunningProvider, fake_provider

__all__ = ["fake_provider"]

PROVIDERS = "/admin/providers/provider/"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator():
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    return client


@pytest.fixture
def new_provider(fake_provider: RunningProvider):
    def make(name: str = "Fake", preset: str = "") -> Provider:
        row = Provider(name=name, preset=preset, base_url=fake_provider.base_url)
        keys.encrypt_api_key(row, "sk-secret")
        row.save()
        return row

    return make


def ids_in(page: str) -> list[str]:
    return [part.partition('"')[0] for part in page.split('name="chosen" value="')[1:]]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fills_in_the_form(operator, name):
    body = {"preset": name, "api_key": "sk-secret"}
    if name == "azure":
        page = operator.post(f"{PROVIDERS}add/", body).content.decode()
        assert "name of your own resource" in page
        body["base_url"] = "https://ours.openai.azure.com/openai/v1"
    answer = operator.post(f"{PROVIDERS}add/", body)
    row = Provider.objects.get()
    assert answer.url == f"{PROVIDERS}{row.pk}/models/"
    preset = PRESETS[name]
    assert (row.preset, row.name) == (name, preset.label)
    assert row.base_url == (body.get("base_url") or preset.base_url)
    assert keys.decrypt_api_key(row) == "sk-secret"


def test_a_preset_that_needs_a_key_says_so(operator):
    page = operator.post(f"{PROVIDERS}add/", {"preset": "openai"}).content.decode()
    assert "OpenAI needs a key." in page
    assert operator.post(f"{PROVIDERS}add/", {"preset": "ollama"}).status_code == 302


def test_models_are_listed_and_the_chosen_ones_added(operator, new_provider):
    provider = new_provider()
    address = f"{PROVIDERS}{provider.pk}/models/"
    listed = ids_in(operator.get(address).content.decode())
    assert {"fake-model", "fake-embedding"} <= {*listed}
    answer = operator.post(address, {"chosen": ["fake-model", "fake-embedding", "made-up"]})
    assert answer.url == f"{PROVIDERS}{provider.pk}/test/"
    model, embedding = LanguageModel.objects.get(), EmbeddingModel.objects.get()
    assert (model.alias, model.upstream_id, model.default) == ("fake-model", "fake-model", True)
    assert (embedding.dimensions, embedding.default) == (1_536, True)
    page = operator.get(address).content.decode()
    assert "fake-model" not in ids_in(page)
    assert "sk-secret" not in page
    assert LogEntry.objects.filter(object_repr="fake-model", action_flag=1).exists()


def test_nothing_chosen_adds_nothing(operator, new_provider):
    answer = operator.post(f"{PROVIDERS}{new_provider().pk}/models/", {}, follow=True)
    assert "Choose at least one model." in answer.content.decode()
    assert not LanguageModel.objects.exists()


def test_a_provider_that_does_not_answer_is_explained(operator):
    provider = Provider.objects.create(name="Gone", base_url="http://127.0.0.1:9/v1")
    page = operator.get(f"{PROVIDERS}{provider.pk}/models/").content.decode()
    assert "The model provider is unavailable." in page


@pytest.mark.parametrize(
    ("preset", "upstream_id"), [("", "fake-obedient"), ("anthropic", "claude"), ("openai", "gpt")]
)
def test_the_test_asks_for_real(operator, new_provider, new_embedding_model, preset, upstream_id):
    provider = new_provider(preset=preset)
    dialect = {"": "tools", "openai": "responses"}.get(preset, preset)
    fields = {"upstream_id": upstream_id, "alias": "m", "tool_dialect": dialect}
    LanguageModel.objects.create(provider=provider, vision=True, **fields)
    EmbeddingModel.objects.create(provider=provider, alias="e", upstream_id="fake-embedding")
    address = f"{PROVIDERS}{provider.pk}/test/"
    assert "What works" not in operator.get(address).content.decode()
    page = operator.post(address, {"alias": ""}).content.decode()
    for kind in ("question", "tool round", "image", "embedding"):
        assert kind in page
    assert "A vector of 1,536 numbers." in page
    assert "The gauge shows 4711." in page or preset == ""
    assert "sk-secret" not in page


def test_only_operators_test(alice, new_provider):
    client = Client()
    client.force_login(alice.user)
    for page in ("models", "test"):
        assert client.post(f"{PROVIDERS}{new_provider(page).pk}/{page}/").status_code == 302
