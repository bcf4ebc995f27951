"""Two that give the same at once: one document comes of it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from amber.lib.errors import Conflict
from libraries.ingestion import intake
from libraries.ingestion.intake import IntakeResult
from libraries.models import Document, File
from libraries.tests.ledger import given, ingest, new_document, new_library

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What they return, in any order."""
    together, made = threading.Barrier(len(acts)), []

    def run(act: Callable[[], Any]) -> None:
        try:
            together.wait(10)
            made.append(act())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return made


@pytest.mark.parametrize("path", [None, "docs/a.txt"])
def test_one_content_given_by_many_is_one_document(alice, media, path):
    library = new_library(alice)
    placed = at_once(*[lambda: intake.put(library, given("Milk.", path=path))] * 5)
    outcomes = sorted(each.outcome.value for each in placed)
    assert outcomes == ["new", "same", "same", "same", "same"]
    assert Document.objects.count() == File.objects.count() == len(media()) == 1


def test_two_contents_for_one_path_are_one_document_with_one_of_them(alice, media):
    library = new_library(alice)
    put = [lambda n=n: intake.put(library, given(f"Content {n}.", path="a")) for n in range(4)]
    placed = at_once(*put)
    assert sorted(each.outcome.value for each in placed) == ["new"] + ["replaced"] * 3
    ingest()
    document = Document.objects.get()
    assert document.text in {f"Content {n}." for n in range(4)}
    assert File.objects.count() == len(media()) == 1


def test_content_for_a_document_that_is_gone_is_a_conflict(alice, media):
    library = new_library(alice)
    document = new_document(library)
    Document.objects.all().delete()
    with pytest.raises(Conflict):
        intake.put(library, given("Milk."), into=document.pk)
    assert not Document.objects.exists()
    assert len(media()) == 1, "the first one's, whose row was deleted here"


def test_content_can_be_given_to_a_document_by_its_id(alice):
    library = new_library(alice)
    document = new_document(library, "Old.", path="a")
    placed = intake.put(library, given("New."), into=document.pk)
    assert (placed.outcome, placed.document.pk) == (IntakeResult.REPLACED, document.pk)
    ingest()
    document.refresh_from_db()
    assert (document.text, document.path) == ("New.", "a")
