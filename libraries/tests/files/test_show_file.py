from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from libraries.models import File
from libraries.tests.stored_files import FILES, address, stored
from tests.fixtures.personas import api


@pytest.fixture
def file(alice):
    return stored(alice)


def test_shows_your_file(alice, file):
    answer = api(alice).get(address(file))
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["name"]) == (str(file.pk), "notes.txt")
    assert file.path not in answer.content.decode()
    assert file.text not in answer.content.decode()


def test_nobody_else_sees_it(file, bob, carol, mallory):
    assert api().get(address(file)).status_code == 401
    for other in (bob, carol, mallory):
        assert api(other).get(address(file)).status_code == 404


def test_neither_absent_nor_expired_is_there(alice, file):
    assert api(alice).get(f"{FILES}{uuid4()}/").status_code == 404
    File.objects.update(expired_at=timezone.now() - timedelta(seconds=1))
    assert api(alice).get(address(file)).status_code == 404


def test_a_file_belongs_to_the_organization_it_was_sent_in(alice, mallory, file):
    assert api(alice).get(address(file)).status_code == 200
    _, key = mallory.new_key()
    assert api(key=key).get(address(file)).status_code == 404


def test_cannot_be_changed(alice, file):
    assert api(alice).patch(address(file), {"name": "other"}).status_code == 405
    assert api(alice).put(address(file), {"name": "other"}).status_code == 405
