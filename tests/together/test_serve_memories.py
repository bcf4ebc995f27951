"""REST of memories: one's own, listed, searched, put right, forgotten, taken along."""

from typing import Any
from uuid import uuid4

import orjson
import pytest

from amber.lib.errors import Unavailable
from assistants.models import Assistant
from chats.tests.event_streams import read_parts
from memory.facts.facts import Fact, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from memory.recall.embedding import embed_waiting
from providers.models import OFFLINE_URL, EmbeddingModel, Provider
from tests.fixtures.personas import Persona, api, found

ALL = "/api/v1/memories/"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def embedder(db: None) -> EmbeddingModel:
    return new_embedder("offline", default=True)


def new_embedder(alias: str, **fields: Any) -> EmbeddingModel:
    provider, _ = Provider.objects.get_or_create(name="Offline", base_url=OFFLINE_URL)
    fields = {"upstream_id": "offline", "dimensions": 512} | fields
    return EmbeddingModel.objects.create(provider=provider, alias=alias, **fields)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Unavailable("No embedding model is enabled.")

    monkeypatch.setattr("memory.recall.embedding.default_embedding_model", refuse)


def new_assistant(persona: Persona, slug: str = "a", **fields: Any) -> Assistant:
    owned = {"organization": persona.organization, "user": persona.user}
    return Assistant.objects.create(**owned, name="A", slug=slug, **fields)


def known(persona: Persona, content: str, **fields: Any) -> Memory:
    return remember(Owner.of(persona.principal), Fact(content, **fields))[0]


def contents(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["content"] for row in answer.json()["results"]]


# -- Keeping ---------------------------------------------------------------------------------------


def test_what_is_posted_is_kept_and_found_by_its_vector(alice, embedder):
    answer = api(alice).post(ALL, {"content": "  I like tea. "})
    assert answer.status_code == 201
    said = answer.json()
    assert (said["content"], said["assistant_id"], said["evidence"]) == ("I like tea.", None, [])
    assert said["valid_until"] is said["superseded_by"] is None
    memory = Memory.objects.get(pk=said["id"])
    assert (memory.user, memory.organization) == (alice.user, alice.organization)
    assert memory.embedding_model_id == embedder.pk
    assert api(alice).get(f"{ALL}{memory.pk}/").json() == said


def test_what_is_known_is_given_back_instead(alice):
    first = api(alice).post(ALL, {"content": "I like tea"}).json()
    again = api(alice).post(ALL, {"content": "i like TEA!"})
    assert (again.status_code, again.json()["id"]) == (200, first["id"])


def test_the_same_idempotency_key_keeps_it_once(alice):
    for _ in range(2):
        answer = api(alice).post(ALL, {"content": "I like tea"}, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 201
    assert Memory.objects.count() == 1
    other = api(alice).post(ALL, {"content": "Another"}, headers={"Idempotency-Key": "k"})
    assert other.json()["error"]["code"] == "idempotency_mismatch"


def test_a_failing_embedder_fails_nothing_and_the_vector_comes_later(alice, away, monkeypatch):
    answer = api(alice).post(ALL, {"content": "My cat is called Biscuit"})
    assert answer.status_code == 201
    found_by_words = api(alice).post(f"{ALL}search/", {"query": "What is my cat called?"}).json()
    assert [each["memory"]["id"] for each in found_by_words["results"]] == [answer.json()["id"]]
    embed_waiting()
    assert Memory.objects.get().embedding_model_id is None
    monkeypatch.undo()
    embed_waiting()
    assert Memory.objects.get().embedding_model_id is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": "  "}, "content"),
        ({"content": "x" * 2_001}, "content"),
        ({"content": "I like tea", "assistant_id": "x"}, "assistant_id"),
        ({"content": "I like tea", "assistant_id": str(uuid4())}, "assistant_id"),
    ],
    ids=["none", "blank", "long", "no uuid", "no assistant"],
)
def test_what_cannot_be_kept_is_refused_by_field(alice, body, field):
    answer = api(alice).post(ALL, body)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not Memory.objects.exists()


def test_a_foreign_assistant_is_no_assistant(alice, bob, mallory):
    foreign = [new_assistant(mallory), new_assistant(bob)]
    for assistant in foreign:
        answer = api(alice).post(ALL, {"content": "x", "assistant_id": str(assistant.pk)})
        assert list(answer.json()["error"]["fields"]) == ["assistant_id"]
    shared = new_assistant(bob, "b", shared=True)
    answer = api(alice).post(ALL, {"content": "x", "assistant_id": str(shared.pk)})
    assert (answer.status_code, answer.json()["assistant_id"]) == (201, str(shared.pk))


# -- Reading ---------------------------------------------------------------------------------------


def test_the_list_holds_what_is_valid_newest_first(alice):
    for content in ("one", "two", "three"):
        known(alice, content)
    old = Memory.objects.get(content="two")
    new, _ = remember(Owner.of(alice.principal), Fact("four"), replaces=old.pk)
    assert contents(api(alice).get(ALL)) == ["four", "three", "one"]
    everything = api(alice).get(ALL, {"all": "true"}).json()["results"]
    assert [row["content"] for row in everything] == ["four", "three", "two", "one"]
    assert everything[2]["superseded_by"] == str(new.pk)
    assert everything[2]["valid_until"] is not None


def test_the_list_of_one_assistant(alice):
    assistant = new_assistant(alice)
    known(alice, "for all")
    known(alice, "for one", assistant_id=assistant.pk)
    assert contents(api(alice).get(ALL, {"assistant_id": str(assistant.pk)})) == ["for one"]
    assert api(alice).get(ALL, {"assistant_id": "x"}).status_code == 400
    assert api(alice).get(ALL, {"all": "yes"}).status_code == 400


def test_search_tells_how_relevant(alice):
    known(alice, "My cat is called Biscuit")
    known(alice, "I work as a plumber")
    answer = api(alice).post(f"{ALL}search/", {"query": "What is my cat called?", "k": 1}).json()
    (hit,) = answer["results"]
    assert hit["memory"]["content"] == "My cat is called Biscuit"
    assert 0.25 <= hit["relevance"] <= 1
    nothing = api(alice).post(f"{ALL}search/", {"query": "Quantum entanglement"}).json()
    assert nothing == {"results": []}
    assert api(alice).post(f"{ALL}search/", {"query": "x", "k": 51}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_the_export_is_one_document_with_everything(alice, bob):
    for number in range(450):
        known(alice, f"fact {number}")
    known(bob, "not hers")
    answer = api(alice).get(f"{ALL}export/")
    assert answer["Content-Disposition"] == 'attachment; filename="memories.json"'
    document = orjson.loads(read_parts(answer))
    assert [memory["content"] for memory in document["memories"]] == [
        f"fact {number}" for number in range(450)
    ]


# -- Changing and forgetting -----------------------------------------------------------------------


def test_an_edit_is_found_by_its_own_words(alice, embedder):
    memory = known(alice, "My cat is called Biscuit")
    answer = api(alice).patch(f"{ALL}{memory.pk}/", {"content": "My dog is called Rex"})
    assert (answer.status_code, answer.json()["content"]) == (200, "My dog is called Rex")
    memory.refresh_from_db()
    assert memory.embedding_model_id == embedder.pk
    assert api(alice).patch(f"{ALL}{memory.pk}/", {"content": ""}).status_code == 400


def test_a_superseded_memory_is_not_edited(alice):
    old = known(alice, "I live in Rome")
    remember(Owner.of(alice.principal), Fact("I live in Oslo"), replaces=old.pk)
    assert api(alice).patch(f"{ALL}{old.pk}/", {"content": "x"}).status_code == 409


def test_forgetting_one(alice):
    memory, other = known(alice, "I like tea"), known(alice, "I like jam")
    assert api(alice).delete(f"{ALL}{memory.pk}/").status_code == 204
    assert list(Memory.objects.all()) == [other]


def test_forgetting_everything_must_be_meant(alice, bob, mallory):
    for persona in (alice, bob, mallory):
        known(persona, "I like tea")
    assert api(alice).delete(ALL).status_code == 400
    assert Memory.objects.count() == 3
    answer = api(alice).delete(f"{ALL}?confirm=true")
    assert (answer.status_code, answer.json()) == (200, {"deleted": 1})
    assert {memory.user for memory in Memory.objects.all()} == {bob.user, mallory.user}


# -- Whose -----------------------------------------------------------------------------------------


def test_nobody_reads_another_persons_memories(alice, bob, carol, mallory):
    memory = known(alice, "My cat is called Biscuit")
    for other in (bob, carol, mallory):
        client = api(other)
        assert contents(client.get(ALL, {"all": "true"})) == []
        assert client.get(f"{ALL}{memory.pk}/").status_code == 404
        assert client.delete(f"{ALL}{memory.pk}/").status_code == 404
        assert client.post(f"{ALL}search/", {"query": "cat Biscuit"}).json() == {"results": []}


def test_memories_stay_in_their_organization(alice):
    elsewhere = found("dave", "Elsewhere")
    known(Persona(alice.user, elsewhere.organization, "member"), "I like tea")
    assert contents(api(alice).get(ALL)) == []


def test_a_key_of_one_assistant_sees_what_is_kept_for_that_one(alice):
    assistant = new_assistant(alice)
    known(alice, "private")
    known(alice, "for the assistant", assistant_id=assistant.pk)
    _, secret = alice.new_key(assistant_id=assistant.pk)
    client = api(key=secret)
    assert contents(client.get(ALL)) == ["for the assistant"]
    assert client.post(f"{ALL}search/", {"query": "private"}).json() == {"results": []}
    assert client.post(ALL, {"content": "by the key"}).status_code == 403
    assert client.delete(f"{ALL}?confirm=true").status_code == 403
    assert valid_of(Owner.of(alice.principal)).count() == 2


def test_a_guest_sees_their_own(alice):
    guest = Owner(alice.organization.pk, guest_id="g1")
    memory, _ = remember(guest, Fact("I like tea"))
    known(alice, "I like jam")
    seen = Memory.objects.visible_to(
        type(alice.principal)(alice.organization.pk, None, guest_id="g1", assistant_id=uuid4())
    )
    assert list(seen) == [memory]


# -- Vectors ---------------------------------------------------------------------------------------


def test_another_default_model_embeds_what_is_there_anew(alice, embedder):
    for number in range(150):
        api(alice).post(ALL, {"content": f"fact {number}"}) if number < 3 else known(
            alice, f"fact {number}"
        )
    old = known(alice, "I live in Rome")
    remember(Owner.of(alice.principal), Fact("I live in Oslo"), replaces=old.pk)
    EmbeddingModel.objects.filter(pk=embedder.pk).update(default=False)
    newer = new_embedder("newer", dimensions=64, default=True)
    embed_waiting()
    valid = Memory.objects.filter(valid_until__isnull=True)
    assert set(valid.values_list("embedding_model_id", flat=True)) == {newer.pk}
    assert all(len(memory.vector) == 64 for memory in valid)
    old.refresh_from_db()
    assert old.embedding_model_id is None


def test_the_waiting_ones_are_found_by_an_index(alice, embedder, django_assert_num_queries):
    known(alice, "one")
    embed_waiting()
    with django_assert_num_queries(2):  # the model, and nothing left
        embed_waiting()
