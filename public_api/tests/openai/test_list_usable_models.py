"""GET /v1/models: what a key may name, and nothing else."""

import openai
import pytest

from chats.tests.rows import new_assistant
from providers.models import EmbeddingModel
from public_api.tests.live_server import live_server, sdk
from tests.fixtures.personas import Persona, api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def models(new_model, provider):
    new_model("zebra", default=True)
    new_model("fast/small")
    new_model("gone", enabled=False)
    EmbeddingModel.objects.create(provider=provider, alias="vectors", upstream_id="v")
    EmbeddingModel.objects.create(provider=provider, alias="old", upstream_id="v", enabled=False)


def listed(persona: Persona, **key: object) -> list[str]:
    _, secret = persona.new_key(scopes=["public"], **key)
    answer = api(key=secret).get("/v1/models")
    assert answer.status_code == 200
    return [model["id"] for model in answer.json()["data"]]


def test_a_key_sees_models_and_the_assistants_of_its_user(alice, bob, mallory, models):
    new_assistant(alice, slug="private")
    new_assistant(alice, slug="shared", shared=True)
    new_assistant(mallory, slug="foreign", shared=True)
    names = ["auto", "fast/small", "zebra", "vectors"]
    assert listed(alice) == [*names, "assistant:shared", "assistant:private"]
    assert listed(bob) == [*names, "assistant:shared"]


def test_a_bound_key_sees_its_assistant_alone(alice, models):
    mine = new_assistant(alice, slug="mine")
    new_assistant(alice, slug="other")
    assert listed(alice, assistant_id=mine.pk) == ["assistant:mine"]


def test_openais_client_lists_and_finds_them(alice, models):
    made = new_assistant(alice, slug="ada", name="Ada")
    _, secret = alice.new_key(scopes=["public"])
    with live_server() as address, sdk(address, secret) as client:
        all_ = [model.to_dict() for model in client.models.list()]
        ada = all_[-1]
        assert ada["id"] == "assistant:ada"
        assert (ada["object"], ada["owned_by"], ada["name"]) == ("model", "organization", "Ada")
        assert ada["created"] == int(made.created_at.timestamp())
        for name in ("assistant:ada", f"assistant:{made.pk}"):
            assert client.models.retrieve(name).to_dict() == ada
        assert client.models.retrieve("fast/small").id == "fast/small"
        assert client.models.retrieve("vectors").owned_by == "amber"
        for name in ("gone", "old", "assistant:nobody", "nonsense"):
            with pytest.raises(openai.NotFoundError) as caught:
                client.models.retrieve(name)
            assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_absent_and_foreign_are_answered_alike(alice, mallory, models):
    foreign = new_assistant(mallory, slug="foreign", shared=True)
    client = api(key=alice.new_key(scopes=["public"])[1])
    said = {
        client.get(f"/v1/models/assistant:{name}").content.decode().replace(str(name), "*")
        for name in (foreign.pk, "foreign", "nobody", "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00")
    }
    assert len(said) == 1
