"""Operators see names and how ingestion goes, and never what people wrote."""

import pytest
from django.urls import reverse

from amber.lib.secrets import encrypt_column
from libraries.models import Document, Library, Repository
from libraries.tests.ledger import ingest, new_document, new_library

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "The secret of the Zanzibar valve"
NAME = "Valve manual.txt"


@pytest.fixture
def document(bob):
    library = new_library(bob, description=SECRET)
    document = new_document(library, SECRET * 10, path=SECRET, name=NAME)
    new_document(library)
    ingest()
    Document.objects.exclude(pk=document.pk).update(status="failed", error="The file is scanned.")
    return document


def test_lists_show_names_and_states_and_no_texts(operator, document):
    libraries = operator.get(reverse("admin:libraries_library_changelist")).content.decode()
    assert str(document.library_id) in libraries
    documents = operator.get(reverse("admin:libraries_document_changelist")).content.decode()
    assert NAME in documents
    assert "The file is scanned." in documents
    assert SECRET not in libraries + documents


def test_pages_of_one_show_states_and_no_texts(operator, document):
    for row in (document, document.library):
        address = reverse(f"admin:libraries_{row._meta.model_name}_change", args=[row.pk])
        page = operator.get(address)
        assert page.status_code == 200
        assert SECRET not in page.content.decode()


def test_lists_cost_the_same_for_many(operator, document, django_assert_max_num_queries):
    for _ in range(10):
        new_document(document.library)
    for name in ("library", "document"):
        with django_assert_max_num_queries(12):
            operator.get(reverse(f"admin:libraries_{name}_changelist"))


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [("retry_documents", "failed", "queued"), ("cancel_documents", "queued", "cancelled")],
)
def test_actions_are_one_verb_each(operator, document, action, before, after):
    Document.objects.update(status=before)
    ids = list(Document.objects.values_list("pk", flat=True))
    address = reverse("admin:libraries_document_changelist")
    answer = operator.post(address, {"action": action, "_selected_action": ids}, follow=True)
    assert answer.status_code == 200
    assert set(Document.objects.values_list("status", flat=True)) == {after}


def test_nothing_is_written_by_forms(operator, document):
    for name in ("library", "document"):
        assert operator.get(reverse(f"admin:libraries_{name}_add")).status_code == 403
    address = reverse("admin:libraries_library_change", args=[document.library_id])
    operator.post(address, {"shared": "on"})
    assert not Library.objects.get().shared


def test_imports_show_names_and_states_and_neither_paths_nor_tokens(operator, bob):
    library = new_library(bob)
    progress = {"new": 3, "removed": 1, "refused": {SECRET: SECRET}}
    repository = Repository(
        organization=bob.organization,
        library=library,
        git_url="https://git.example/plant/manuals.git",
        status="failed",
        error="The repository refuses the token.",
        include=[SECRET],
        progress=progress,
    )
    encrypt_column(repository, "token", SECRET)
    repository.save()
    listed = operator.get(reverse("admin:libraries_repository_changelist")).content.decode()
    page = operator.get(reverse("admin:libraries_repository_change", args=[repository.pk]))
    shown = listed + page.content.decode()
    assert page.status_code == 200
    assert "The repository refuses the token." in listed
    assert "3 new, 1 removed" in listed
    assert "plant/manuals" in listed
    assert SECRET not in shown
    assert repository.token_sealed not in shown
