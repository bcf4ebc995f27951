from uuid import uuid4

import pytest

from libraries.models import Document, DocumentChunk, File, Library
from libraries.tests.enqueued import enqueued
from libraries.tests.ledger import ALL, ingest, new_document, new_library, new_model
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["enqueued"]


def one(library: Library) -> str:
    return f"{ALL}{library.pk}/"


@pytest.fixture
def model(db):
    return new_model(alias="small", default=True, max_input_tokens=500)


class TestCreate:
    def test_a_name_is_enough(self, bob, model):
        answer = api(bob).post(ALL, {"name": "Manuals"})
        assert answer.status_code == 201
        library = Library.objects.get()
        assert (library.organization, library.user) == (bob.organization, bob.user)
        body = answer.json()
        assert body.pop("created_at") and body.pop("updated_at")
        assert body == {
            "id": str(library.pk),
            "name": "Manuals",
            "description": "",
            "default": False,
            "shared": False,
            "access": "own",
            "embedding_model": "small",
            "next_embedding_model": None,
            "chunk_tokens": 200,
            "overlap_tokens": 40,
            "chunk_count": 0,
            "user_id": str(bob.user.pk),
        }

    def test_everything_that_can_be_said_is_kept(self, bob, model):
        new_model(alias="large")
        said = {
            "name": "N",
            "description": "D",
            "default": True,
            "shared": True,
            "embedding_model": "large",
            "chunk_tokens": 300,
            "overlap_tokens": 0,
        }
        answer = api(bob).post(ALL, said)
        assert answer.status_code == 201
        assert answer.json().items() >= said.items()
        assert api(bob).get(f"{ALL}{answer.json()['id']}/").json().items() >= said.items()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("name", "n" * 201),
            ("name", "a\0b"),
            ("description", "d" * 2_001),
            ("shared", "perhaps"),
            ("chunk_tokens", 49),
            ("chunk_tokens", 501),
            ("chunk_tokens", 8_001),
            ("overlap_tokens", 400),
            ("overlap_tokens", -1),
            ("embedding_model", "no such"),
            ("embedding_model", None),
        ],
    )
    def test_a_wrong_field_is_named(self, bob, model, field, value):
        answer = api(bob).post(ALL, {"name": "N", field: value})
        assert answer.status_code == 400
        assert list(answer.json()["error"]["fields"]) == [field]
        assert not Library.objects.exists()

    def test_an_unknown_model_is_told_the_known_ones(self, bob, model):
        new_model(alias="off", enabled=False)
        error = api(bob).post(ALL, {"name": "N", "embedding_model": "off"}).json()["error"]
        assert error["code"] == "unknown_model"
        assert error["message"].endswith("There are: small.")

    def test_the_default_is_one_a_person(self, bob, carol, model):
        first = api(bob).post(ALL, {"name": "1", "default": True}).json()["id"]
        others = api(carol).post(ALL, {"name": "c", "default": True}).json()["id"]
        second = api(bob).post(ALL, {"name": "2", "default": True}).json()["id"]
        defaults = Library.objects.filter(default=True).values_list("pk", flat=True)
        assert {str(pk) for pk in defaults} == {others, second}
        assert api(bob).patch(f"{ALL}{first}/", {"default": True}).status_code == 200
        assert Library.objects.get(user=bob.user, default=True).name == "1"

    def test_the_same_key_makes_one(self, bob, model):
        headers = {"Idempotency-Key": "k"}
        answers = [api(bob).post(ALL, {"name": "N"}, headers=headers) for _ in range(2)]
        assert [a.status_code for a in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
        assert Library.objects.count() == 1

    def test_a_key_of_one_assistant_makes_none(self, bob, model, assistant_key):
        assert api(key=assistant_key).post(ALL, {"name": "N"}).status_code == 403


@pytest.fixture
def assistant_key(bob, monkeypatch):
    monkeypatch.setattr("accounts.registry.sees_assistant._function", lambda *_: True)
    return bob.new_key(assistant_id=uuid4())[1]


class TestSee:
    def test_ones_own_and_shared_ones(self, alice, bob, mallory):
        own = new_library(bob, name="own")
        shared = new_library(alice, name="shared", shared=True)
        new_library(alice, name="private")
        new_library(mallory, name="foreign", shared=True)
        names = [each["name"] for each in api(bob).get(ALL).json()["results"]]
        assert names == ["shared", "own"]
        assert api(bob).get(one(own)).status_code == 200
        assert api(bob).get(one(shared)).status_code == 200
        found = api(bob).get(ALL, {"q": "SHAR"}).json()["results"]
        assert [each["name"] for each in found] == ["shared"]

    def test_how_far_its_ingestion_is(self, bob):
        library = new_library(bob)
        documents = [new_document(library) for _ in range(5)]
        for document, status in zip(
            documents, ("ready", "ready", "failed", "running"), strict=False
        ):
            Document.objects.filter(pk=document.pk).update(status=status)
        counts = api(bob).get(one(library)).json()["documents"]
        assert counts == {"queued": 1, "running": 1, "ready": 2, "failed": 1, "cancelled": 0}

    def test_a_page_costs_the_same_for_many(self, bob, django_assert_max_num_queries):
        for _ in range(5):
            new_library(bob)
        client = api(bob)
        with django_assert_max_num_queries(6):
            client.get(ALL)


class TestChange:
    def test_its_creator_and_admins_if_it_is_shared(self, alice, bob, carol, mallory):
        library = new_library(bob, shared=True)
        assert api(bob).patch(one(library), {"name": "1"}).status_code == 200
        assert api(carol).patch(one(library), {"name": "2"}).json()["name"] == "2"
        private = new_library(bob)
        assert api(carol).patch(one(private), {"name": "3"}).status_code == 404
        colleagues = new_library(alice, shared=True)
        assert api(bob).patch(one(colleagues), {"name": "4"}).status_code == 403
        assert api(bob).delete(one(colleagues)).status_code == 403
        assert api(bob).post(f"{one(colleagues)}reindex/").status_code == 403
        assert api(mallory).patch(one(library), {"name": "5"}).status_code == 404

    def test_sizes_must_fit(self, bob, model):
        library = new_library(bob, embedding_model=model)
        for wrong in ({"chunk_tokens": 501}, {"overlap_tokens": 60}):
            answer = api(bob).patch(one(library), wrong)
            assert list(answer.json()["error"]["fields"]) == list(wrong)
        library.refresh_from_db()
        assert (library.chunk_tokens, library.overlap_tokens) == (60, 10)

    def test_another_model_is_taken_in_the_background(self, bob, enqueued):
        library = new_library(bob)
        new_document(library)
        ingest()
        new_model(alias="next")
        body = api(bob).patch(one(library), {"embedding_model": "next"}).json()
        assert (body["embedding_model"], body["next_embedding_model"]) == (
            library.embedding_model.alias,
            "next",
        )
        assert body["documents"]["queued"] == 1
        assert "libraries.ingest" in enqueued

    def test_reindexing_queues_all(self, bob, enqueued):
        library = new_library(bob)
        for _ in range(2):
            new_document(library)
        ingest()
        answer = api(bob).post(f"{one(library)}reindex/")
        assert answer.status_code == 202
        assert answer.json()["documents"]["queued"] == 2
        assert enqueued == ["libraries.ingest"]


class TestDelete:
    def test_it_is_gone_at_once_for_everybody(self, bob, enqueued):
        library = new_library(bob, default=True)
        document = new_document(library)
        ingest()
        assert api(bob).delete(one(library)).status_code == 204
        assert enqueued == ["libraries.erase"]
        for address in (one(library), f"/api/v1/documents/{document.pk}/"):
            assert api(bob).get(address).status_code == 404
        assert api(bob).get(ALL).json()["results"] == []
        assert api(bob).delete(one(library)).status_code == 404
        assert api(bob).post(ALL, {"name": "N", "default": True}).status_code == 201

    def test_nothing_is_left_behind(self, bob, media, monkeypatch):
        from libraries.ingestion import leftovers

        monkeypatch.setattr(leftovers, "CHUNKS_AT_ONCE", 7)
        monkeypatch.setattr(leftovers, "DOCUMENTS_AT_ONCE", 2)
        library, kept = new_library(bob), new_library(bob)
        for _ in range(5):
            new_document(library)
        stays = new_document(kept)
        ingest()
        api(bob).delete(one(library))
        leftovers.erase_leftovers()
        assert Library.objects.get() == kept
        assert Document.objects.get().pk == stays.pk
        assert not DocumentChunk.objects.exclude(document=stays).exists()
        assert File.objects.count() == len(media()) == 1
