"""Set a provider up as an operator does: by a preset, its models, and a test that asks for real."""

from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from amber.lib.secrets import decrypt_column, encrypt_column
from providers import services
from providers.known_models import NamedModel
from providers.models import EmbeddingModel, LanguageModel, Provider
from providers.presets import PRESETS
from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]

PROVIDERS = "/admin/providers/provider/"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def new_provider(fake_provider):
    def make(name="Fake", preset=""):
        row = Provider(name=name, preset=preset, base_url=fake_provider.base_url)
        encrypt_column(row, "api_key", "sk-secret")
        row.save()
        return row

    return make


def ids_in(page):
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
    assert decrypt_column(row, "api_key") == "sk-secret"


def test_a_preset_that_needs_a_key_says_so(operator):
    page = operator.post(f"{PROVIDERS}add/", {"preset": "openai"}).content.decode()
    assert "OpenAI needs a key." in page
    assert operator.post(f"{PROVIDERS}add/", {"preset": "ollama"}).status_code == 302


def test_a_key_that_was_copied_shortened_is_refused(operator):
    answer = operator.post(f"{PROVIDERS}add/", {"preset": "openai", "api_key": "sk-…abcd"})
    assert "Copy the whole key." in answer.content.decode()
    assert not Provider.objects.exists()


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


def test_the_page_of_a_provider_leads_to_both(operator, new_provider):
    address = f"{PROVIDERS}{new_provider().pk}/"
    page = operator.get(f"{address}change/").content.decode()
    assert f'href="{address}models/"' in page
    assert f'href="{address}test/"' in page


def test_nothing_chosen_adds_nothing(operator, new_provider):
    answer = operator.post(f"{PROVIDERS}{new_provider().pk}/models/", {}, follow=True)
    assert "Choose at least one model." in answer.content.decode()
    assert not LanguageModel.objects.exists()


def test_a_provider_that_does_not_answer_is_explained(operator):
    provider = Provider.objects.create(name="Gone", base_url="http://127.0.0.1:9/v1")
    page = operator.get(f"{PROVIDERS}{provider.pk}/models/").content.decode()
    assert "The model provider is unavailable." in page


def test_sizes_are_filled_in_where_the_provider_says_them(operator, new_provider):
    """Anthropic's list: another header, sizes and abilities in its own words."""
    provider = new_provider(preset="anthropic")
    operator.post(f"{PROVIDERS}{provider.pk}/models/", {"chosen": ["claude-calls"]})
    model = LanguageModel.objects.get()
    assert (model.tool_dialect, model.vision) == ("anthropic", True)
    assert (model.context_tokens, model.max_output_tokens) == (1_000_000, 32_000)


@pytest.fixture
def with_models(new_provider):
    """A provider that speaks this dialect, with a model for talking and one for vectors."""

    def make(dialect, upstream_id, **fields):
        provider = new_provider()
        fields = {"upstream_id": upstream_id, "tool_dialect": dialect, "vision": True} | fields
        LanguageModel.objects.create(provider=provider, alias="talk", **fields)
        EmbeddingModel.objects.create(provider=provider, alias="vec", upstream_id="fake-embedding")
        return provider

    return make


def lines_of(*arguments):
    said = StringIO()
    call_command("check_provider", *arguments, stdout=said)
    return said.getvalue().splitlines()


@pytest.mark.parametrize(
    ("dialect", "upstream_id"), [("anthropic", "claude-thinks"), ("responses", "gpt-thinks")]
)
def test_all_of_a_provider_that_can_do_all_works(with_models, dialect, upstream_id):
    with_models(dialect, upstream_id, extra_parameters={"reasoning_effort": "high"})
    question, tool_round, image, embedding = lines_of("Fake")
    for line in (question, tool_round, image):
        assert " works  talk  (first token " in line
    assert "The gauge shows 4711." in tool_round
    assert "“Red.”" in image and "vision" not in image
    assert "works  vec" in embedding and "A vector of 1,536 numbers." in embedding


def test_the_page_shows_what_works_and_what_does_not(operator, with_models):
    """The model says other things: it does not call, and does not see."""
    provider = with_models("tools", "fake-model")
    address = f"{PROVIDERS}{provider.pk}/test/"
    assert "What works" not in operator.get(address).content.decode()
    page = operator.post(address, {"alias": ""}).content.decode()
    assert page.count("<td>works</td>") == 2  # the question, the embedding
    assert page.count("does not work") == 2
    assert "Untick “vision” of the model." in page
    assert "sk-secret" not in page
    assert LogEntry.objects.filter(object_id=str(provider.pk), action_flag=2).exists()


def test_one_model_may_be_tested(operator, with_models):
    provider = with_models("tools", "fake-model")
    page = operator.post(f"{PROVIDERS}{provider.pk}/test/", {"alias": "vec"}).content.decode()
    assert "A vector of" in page
    assert "It said" not in page


@pytest.mark.parametrize(
    ("upstream_id", "words"),
    [
        ("fake-401", "refused Amber's credentials"),
        ("fake-400", "refused the request"),
    ],
)
def test_the_command_fails_with_the_question(with_models, upstream_id, words):
    with_models("tools", upstream_id)
    said = StringIO()
    with pytest.raises(CommandError, match=r"The question failed\."):
        call_command("check_provider", "Fake", stdout=said)
    first = said.getvalue().splitlines()[0]
    assert first.startswith("question    FAILS") and words in first


def test_the_command_lists_and_adds(new_provider):
    new_provider()
    assert any("fake-model" in line for line in lines_of("Fake", "--list"))
    assert lines_of("Fake", "--add", "fake-model") == ["Added: fake-model"]
    assert lines_of("Fake", "--add", "fake-model") == ["Added: none"]
    with pytest.raises(CommandError, match="does not name made-up"):
        lines_of("Fake", "--add", "made-up")


def test_the_command_says_what_is_missing(new_provider):
    new_provider()
    with pytest.raises(CommandError, match="There is no provider 'Other', but: Fake"):
        lines_of("Other")
    with pytest.raises(CommandError, match="It has no such model"):
        lines_of("Fake")


def test_an_alias_that_is_taken_gets_the_providers_name(new_provider):
    model = NamedModel("gpt", "chat")
    aliases = [services.add_models(new_provider(name), [model])[0].alias for name in ("A", "B")]
    assert aliases == ["gpt", "B/gpt"]


def test_long_and_reserved_names_get_an_alias(new_provider):
    provider = new_provider("P")
    names = ["x" * 200, "x" * 130, "auto"]
    rows = services.add_models(provider, [NamedModel(name, "chat") for name in names])
    assert [row.alias for row in rows] == ["x" * 120, f"P/{'x' * 118}", "P/auto"]
    assert [row.upstream_id for row in rows] == names


def test_an_older_lm_studio_is_asked_for_its_other_list(operator, new_provider):
    """The server has no /api/v0/models."""
    provider = new_provider(preset="lm_studio")
    assert "fake-model" in ids_in(
        operator.get(f"{PROVIDERS}{provider.pk}/models/").content.decode()
    )


def test_the_offline_provider_has_no_list(operator):
    provider = Provider.objects.create(name="offline", base_url="offline:")
    page = operator.get(f"{PROVIDERS}{provider.pk}/models/").content.decode()
    assert "It names no models." in page


def test_a_default_that_works_stays(new_provider):
    services.add_models(new_provider("A"), [NamedModel("old", "chat")])
    services.add_models(new_provider("B"), [NamedModel("new", "chat")])
    assert LanguageModel.objects.get(default=True).alias == "old"


def test_local_servers_get_one_system_message(new_provider):
    services.add_models(new_provider(preset="ollama"), [NamedModel("llama", "chat")])
    model = LanguageModel.objects.get()
    assert (model.system_position, model.context_tokens) == ("only_first", 4_096)


def test_only_operators_test(alice, new_provider):
    client = Client()
    client.force_login(alice.user)
    for page in ("models", "test"):
        assert client.post(f"{PROVIDERS}{new_provider(page).pk}/{page}/").status_code == 302
