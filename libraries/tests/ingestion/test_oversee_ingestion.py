"""Where documents are in ingestion and how fast it goes: for a library over REST, for all in the admin."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from libraries.models import Document, DocumentStage, Library
from libraries.tests.ledger import ingest, new_document, new_library
from tests.fixtures.personas import api

PAGE = "/admin/libraries/document/ingestion/"


def address(library: Library) -> str:
    return f"/api/v1/libraries/{library.pk}/ingestion/"


def add(library: Library, status: str, stage: str = "stored", **fields: Any) -> Document:
    return Document.objects.create(
        organization=library.organization,
        library=library,
        name="a",
        status=status,
        stage=stage,
        **fields,
    )


@pytest.fixture
def library(bob):
    """Two documents wait, one of them for its provider; one is at each stage; some have ended."""
    library, now = new_library(bob), timezone.now()
    oldest = add(library, "queued", not_before=now + timedelta(minutes=1))
    Document.objects.filter(pk=oldest.pk).update(created_at=now - timedelta(hours=3))
    add(library, "queued", "parsed", not_before=now - timedelta(minutes=1))
    for stage in DocumentStage.values:
        add(library, "running", stage, lease_until=now + timedelta(hours=1))
    for chunks, parsed, ago in ((30, 100, 1), (20, 300, 9), (7_000, 9_000, 11)):
        add(
            library,
            "ready",
            "ready",
            progress={"chunks": chunks},
            timings={"parsed": parsed, "ready": 5},
            ended_at=now - timedelta(minutes=ago),
        )
    add(library, "failed", ended_at=now), add(library, "cancelled", ended_at=now)
    for status in ("queued", "ready"):
        library.repositories.create(
            organization=library.organization, git_url=f"https://{status}.example", status=status
        )
    return library


STEPS = {
    "fetching": 1,
    "queued": 2,
    "parsing": 1,
    "chunking": 1,
    "embedding": 2,
    "indexing": 1,
    "ready": 3,
    "failed": 1,
    "cancelled": 1,
}


def test_a_library_tells_its_steps_and_speed(bob, library, django_assert_max_num_queries):
    new_document(new_library(bob))
    client = api(bob)
    with django_assert_max_num_queries(9):
        found = client.get(address(library)).json()
    oldest = found.pop("oldest_waiting_at")
    assert oldest.startswith(str((timezone.now() - timedelta(hours=3)).date()))
    assert found == {
        "steps": STEPS,
        "put_off": 1,
        "documents_per_minute": 0.2,
        "chunks_per_minute": 5.0,
        "mean_ms": {"parsed": 200, "ready": 5},
    }


@pytest.mark.django_db(transaction=True)
def test_what_was_ingested_is_counted(bob):
    library = new_library(bob)
    new_document(library)
    assert api(bob).get(address(library)).json()["steps"]["queued"] == 1
    ingest()
    found = api(bob).get(address(library)).json()
    assert (found["steps"]["ready"], found["oldest_waiting_at"]) == (1, None)
    assert found["documents_per_minute"] == 0.1
    assert found["chunks_per_minute"] == Library.objects.get().chunk_count / 10
    assert set(found["mean_ms"]) == {"parsed", "chunked", "embedded", "ready"}


def test_only_those_who_see_the_library_are_told(alice, bob, mallory, library):
    assert api().get(address(library)).status_code == 401
    for persona in (alice, mallory):
        assert api(persona).get(address(library)).status_code == 404
    Library.objects.update(shared=True)
    assert api(alice).get(address(library)).status_code == 200
    assert api(mallory).get(address(library)).status_code == 404


def test_operators_see_all_libraries_at_once(library, mallory, django_assert_max_num_queries):
    other = new_library(mallory)
    for _ in range(3):
        add(other, "queued")
    operator = get_user_model().objects.create_superuser("op@example.com")
    client = Client()
    client.force_login(operator)
    with django_assert_max_num_queries(12):
        answer = client.get(PAGE)
    steps = {step.title: step.count for step in answer.context["steps"]}
    assert steps == {
        "Git imports": "1",
        "Queued": "5",
        "Being parsed": "1",
        "Being cut up": "1",
        "Being embedded": "2",
        "Being indexed": "1",
        "Ready": "3",
        "Failed": "1",
        "Cancelled": "1",
    }
    waiting = [(each["name"], each["count"]) for each in answer.context["waiting"]]
    assert waiting == [
        (mallory.organization.name, "3"),
        (library.organization.name, "2"),
    ]
    page = " ".join(answer.content.decode().split())
    assert "1 of the queued waits for its provider" in page
    assert "3 hours" in page
    for step in answer.context["steps"]:
        assert client.get(step.link).status_code == 200, step.link


def test_the_page_is_for_operators_with_the_right(alice, library):
    client = Client()
    client.force_login(alice.user)
    assert client.get(PAGE).status_code == 302
    get_user_model().objects.filter(pk=alice.user.pk).update(is_staff=True)
    assert client.get(PAGE).status_code == 403
