"""Imports that somebody cancels or deletes, while a worker is at them and after."""

from functools import partial
from typing import Any

import pytest

from libraries import services
from libraries.git import importing
from libraries.ingestion import intake, leftovers
from libraries.ingestion.document_deletion import remove_document
from libraries.models import Document, DocumentChunk, File, Repository
from libraries.tests.git.served_repositories import (
    FILES,
    ask,
    claimed,
    imported,
    texts,
    work,
)
from libraries.tests.ledger import assert_counted, ingest, new_document, new_library
from tests.fixtures.personas import OPERATOR, Persona, api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("enqueued")]


def address(repository: Any) -> str:
    return f"/api/v1/imports/{repository.pk}/"


def cancel(persona: Persona | None, repository: Any) -> Any:
    return api(persona).post(f"{address(repository)}cancel/")


def delete(persona: Persona | None, repository: Any) -> Any:
    return api(persona).delete(address(repository))


def run_interrupted(monkeypatch: Any, where: str, work: Any, interrupt: Any) -> Any:
    """A worker runs the claimed import; `interrupt` comes right after the first `work`."""
    repository = claimed()
    done: list[Any] = []

    def interrupted(*given: Any, **more: Any) -> Any:
        done.append(work(*given, **more))
        if len(done) == 1:
            interrupt(repository)
        return done[-1]

    with monkeypatch.context() as patched:
        patched.setattr(where, interrupted)
        importing.run(repository)
    return repository


# -- Cancelling ------------------------------------------------------------------------------------


def test_one_that_waits_is_not_begun(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    answer = cancel(bob, Repository.objects.get())
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["ended_at"]
    assert claimed() is None
    assert not server.requests


def test_a_running_one_stores_nothing_more(bob, library, server, monkeypatch):
    ask(bob, library, server.url("pumps.git"))
    repository = run_interrupted(
        monkeypatch, "libraries.ingestion.intake.put", intake.put, partial(cancel, bob)
    )
    assert Document.objects.count() == 1
    shown = api(bob).get(address(repository)).json()
    assert (shown["status"], shown["error"]) == ("cancelled", "")
    assert claimed() is None, "nobody takes it up again"


def test_a_running_one_removes_nothing_more(bob, library, source, server, monkeypatch):
    imported(bob, library, server.url("pumps.git"))
    source.commit({"README.md": FILES["README.md"]})
    ask(bob, library, server.url("pumps.git"))
    where = "libraries.git.importing.remove_document"

    def fenced_before_the_commit(repository: Any) -> None:
        Repository.objects.filter(pk=repository.pk).update(fence=99)

    run_interrupted(monkeypatch, where, remove_document, fenced_before_the_commit)
    assert Document.objects.count() == len(FILES)


def test_a_running_one_stops_when_its_library_is_deleted(bob, library, server, monkeypatch):
    ask(bob, library, server.url("pumps.git"))

    def delete_and_renew(repository: Any) -> None:
        assert importing.running_imports.ids() == [repository.pk]
        services.delete_library(library, by=OPERATOR)
        importing.running_imports.renew(repository.worker)

    run_interrupted(monkeypatch, "libraries.ingestion.intake.put", intake.put, delete_and_renew)
    assert Document.objects.count() == 1
    assert importing.running_imports.ids() == []


def test_the_next_import_goes_on_from_there(bob, library, server, monkeypatch):
    ask(bob, library, server.url("pumps.git"))
    run_interrupted(monkeypatch, "libraries.ingestion.intake.put", intake.put, partial(cancel, bob))
    assert ask(bob, library, server.url("pumps.git")).status_code == 202
    repository = work()
    assert (repository.status, repository.progress["unchanged"]) == ("ready", 1)
    assert texts(library) == FILES


def test_what_has_ended_stays_as_it_is(bob, library, server):
    repository = imported(bob, library, server.url("pumps.git"))
    assert cancel(bob, repository).json()["status"] == "ready"


def test_operators_cancel_too(bob, library, server, admin_client):
    ask(bob, library, server.url("pumps.git"))
    chosen = {"action": "cancel_imports", "_selected_action": [Repository.objects.get().pk]}
    admin_client.post("/admin/libraries/repository/", chosen)
    assert Repository.objects.get().status == "cancelled"


# -- Deleting --------------------------------------------------------------------------------------


def test_its_documents_go_with_it_and_no_others(bob, library, server, enqueued):
    repository = imported(bob, library, server.url("pumps.git"), token="a-token")
    mine = new_document(library, "My own.")
    ingest()
    assert delete(bob, repository).status_code == 204
    assert "libraries.erase" in enqueued
    assert api(bob).get(address(repository)).status_code == 404
    assert api(bob).get(f"/api/v1/libraries/{library.pk}/import/").json()["results"] == []
    assert Repository.objects.get().token_sealed == ""
    leftovers.erase_leftovers()
    assert not Repository.objects.exists()
    assert list(Document.objects.values_list("pk", flat=True)) == [mine.pk]
    assert set(DocumentChunk.objects.values_list("document", flat=True)) == {mine.pk}
    assert File.objects.count() == 1
    assert_counted(library)


def test_a_running_one_that_is_deleted_stores_nothing_more(bob, library, server, monkeypatch):
    ask(bob, library, server.url("pumps.git"))
    run_interrupted(monkeypatch, "libraries.ingestion.intake.put", intake.put, partial(delete, bob))
    assert Document.objects.count() == 1
    leftovers.erase_leftovers()
    assert not Document.objects.exists()


def test_an_eraser_that_was_killed_is_followed_by_another(bob, library, server, monkeypatch):
    repository = imported(bob, library, server.url("pumps.git"))
    delete(bob, repository)
    removed: list[Any] = []

    def killed(pk: Any, **more: Any) -> None:
        if removed:
            raise SystemExit
        removed.append(remove_document(pk, **more))

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr("libraries.ingestion.leftovers.remove_document", killed)
        leftovers.erase_leftovers()
    assert Document.objects.count() == len(FILES) - 1
    leftovers.erase_leftovers()
    assert not Repository.objects.exists()
    assert not Document.objects.exists()


def test_the_same_repository_waits_until_it_is_gone(bob, library, server):
    repository = imported(bob, library, server.url("pumps.git"))
    delete(bob, repository)
    answer = ask(bob, library, server.url("pumps.git"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    leftovers.erase_leftovers()
    assert imported(bob, library, server.url("pumps.git")).status == "ready"
    assert texts(library) == FILES


# -- Who may ---------------------------------------------------------------------------------------


def test_who_only_reads_the_library_may_look(alice, bob, mallory, server):
    shared = new_library(alice, shared=True)
    repository = imported(alice, shared, server.url("pumps.git"))
    statuses = [
        (
            api(persona).get(address(repository)).status_code,
            cancel(persona, repository).status_code,
            delete(persona, repository).status_code,
        )
        for persona in (bob, mallory, None)
    ]
    assert statuses == [(200, 403, 403), (404, 404, 404), (401, 401, 401)]
    assert Repository.objects.get().deleted_at is None
