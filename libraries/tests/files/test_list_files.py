from datetime import timedelta

from django.utils import timezone

from libraries.models import File
from libraries.tests.stored_files import FILES, stored
from tests.fixtures.personas import Persona, api


def names(persona: Persona) -> list[str]:
    return [row["name"] for row in api(persona).get(FILES).json()["results"]]


def test_lists_your_own_newest_first(alice, bob, carol, mallory):
    for name in ("one", "two", "three"):
        stored(alice, name)
    stored(bob, "of bob")
    assert names(alice) == ["three", "two", "one"]
    assert names(bob) == ["of bob"]
    assert names(carol) == names(mallory) == []


def test_has_pages(alice):
    for name in ("one", "two", "three"):
        stored(alice, name)
    page = api(alice).get(FILES, {"limit": 2}).json()
    assert [row["name"] for row in page["results"]] == ["three", "two"]
    assert [row["name"] for row in api(alice).get(page["next"]).json()["results"]] == ["one"]
    assert api(alice).get(FILES, {"limit": "none"}).status_code == 400


def test_shows_no_text_and_no_path(alice):
    file = stored(alice)
    answer = api(alice).get(FILES).content.decode()
    assert file.path not in answer
    assert file.text not in answer


def test_leaves_out_expired_files(alice):
    stored(alice, "old")
    File.objects.update(expired_at=timezone.now() - timedelta(seconds=1))
    stored(alice, "new")
    assert names(alice) == ["new"]
    File.objects.update(expired_at=timezone.now() + timedelta(hours=1))
    assert names(alice) == ["new", "old"]


def test_refuses_strangers(db):
    assert api().get(FILES).status_code == 401
