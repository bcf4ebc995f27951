from datetime import timedelta
from unittest.mock import patch

import pytest
from django.core.files.storage import FileSystemStorage
from django.utils import timezone

from libraries.files import storage
from libraries.models import Document, File, Library
from libraries.tests.stored_files import address, stored
from providers.models import EmbeddingModel, Provider
from tests.fixtures.personas import api


@pytest.fixture
def file(alice):
    return stored(alice)


def test_deletes_row_and_bytes(alice, file, media, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        assert api(alice).delete(address(file)).status_code == 204
    assert not File.objects.exists()
    assert len(media()) == 1, "the bytes go after the commit"
    for callback in callbacks:
        callback()
    assert media() == []
    assert api(alice).delete(address(file)).status_code == 404


def test_nobody_else_deletes_it(file, bob, carol, mallory, media):
    assert api().delete(address(file)).status_code == 401
    for other in (bob, carol, mallory):
        assert api(other).delete(address(file)).status_code == 404
    assert File.objects.count() == len(media()) == 1


def test_a_key_that_only_reads_deletes_nothing(alice, file):
    _, key = alice.new_key(scopes=["read"])
    assert api(key=key).delete(address(file)).status_code == 403
    assert File.objects.exists()


def test_what_refers_to_it_stays(alice, file):
    organization = alice.organization
    provider = Provider.objects.create(name="p")
    model = EmbeddingModel.objects.create(provider=provider, alias="e", upstream_id="e")
    library = Library.objects.create(organization=organization, name="l", embedding_model=model)
    document = Document.objects.create(organization=organization, library=library, file=file)
    assert api(alice).delete(address(file)).status_code == 204
    document.refresh_from_db()
    assert document.file is None


def test_a_storage_that_is_away_keeps_bytes_and_loses_the_row(
    alice, file, django_capture_on_commit_callbacks
):
    with (
        patch.object(FileSystemStorage, "delete", side_effect=OSError),
        django_capture_on_commit_callbacks(execute=True),
    ):
        assert api(alice).delete(address(file)).status_code == 204
    assert not File.objects.exists()


def test_deletes_expired_files_in_turn(alice, media, django_capture_on_commit_callbacks):
    for name in ("one", "two", "three"):
        stored(alice, name)
    File.objects.update(expired_at=timezone.now() - timedelta(seconds=1))
    kept = stored(alice, "kept")
    with (
        patch.object(storage, "DELETED_AT_ONCE", 2),
        django_capture_on_commit_callbacks(execute=True),
    ):
        counts = [storage.delete_files(File.objects.past_expiry()) for _ in range(3)]
    assert counts == [2, 1, 0]
    assert File.objects.get() == kept
    assert len(media()) == 1
