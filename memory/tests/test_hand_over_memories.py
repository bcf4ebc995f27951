"""Memories of a guest who turned out to be a user."""

import pytest

from accounts.models import User
from memory.facts.facts import Fact, RememberResult, remember, valid_of
from memory.facts.handover import hand_over
from memory.models import Memory
from memory.owner import Owner
from tests.fixtures.personas import Persona


@pytest.fixture
def giver(alice: Persona) -> Owner:
    return Owner(alice.organization.pk, None, "web:1")


@pytest.fixture
def taker(alice: Persona) -> Owner:
    return Owner.of(alice.principal)


def contents(owner: Owner) -> list[str]:
    return sorted(valid_of(owner).values_list("content", flat=True))


def test_all_of_them_change_hands(giver, taker):
    for number in range(250):
        remember(giver, Fact(f"Fact {number}"))
    assert hand_over(giver, taker) == 250
    assert (valid_of(giver).count(), valid_of(taker).count()) == (0, 250)


def test_they_are_found_by_words_as_their_new_owner_s(giver, taker):
    remember(giver, Fact("They like cats."))
    hand_over(giver, taker)
    moved, written = Memory.objects.get(), remember(taker, Fact("They like dogs."))[0]
    written.refresh_from_db()
    assert taker.word in moved.search and taker.word in written.search
    assert giver.word not in moved.search


def test_what_is_known_already_is_not_kept_twice(giver, taker):
    remember(giver, Fact("They like cats."))
    kept, _ = remember(taker, Fact("They like cats."))
    assert hand_over(giver, taker) == 0
    assert valid_of(taker).get() == kept
    assert not Memory.objects.filter(guest_id__isnull=False).exists()


def test_what_was_superseded_comes_along(giver, taker):
    old, _ = remember(giver, Fact("They live in Ulm."))
    new, outcome = remember(giver, Fact("They live in Bonn."), replaces=old.pk)
    assert outcome is RememberResult.SUPERSEDED
    remember(taker, Fact("They live in Bonn."))
    hand_over(giver, taker)
    old.refresh_from_db()
    assert old.user == User.objects.get(pk=taker.user_id)
    assert old.superseded_by == valid_of(taker).get() != new
    assert contents(taker) == ["They live in Bonn."]


def test_other_guests_keep_theirs(giver, taker):
    other = Owner(giver.organization_id, None, "web:2")
    remember(other, Fact("They like cats."))
    assert hand_over(giver, taker) == 0
    assert contents(other) == ["They like cats."]
