"""POST assistants/{id}/dismiss-guests/: whoever edits the assistant ends its guests' tokens."""

import pytest

from accounts.registry import public_assistant
from assistants.models import Assistant
from tests.fixtures.personas import api


def dismiss(persona, assistant):
    return api(persona).post(f"/api/v1/assistants/{assistant.pk}/dismiss-guests/")


@pytest.fixture
def assistant(guest):
    return guest.assistant


def epoch(assistant):
    return Assistant.objects.get(pk=assistant.pk).guest_epoch


def test_raises_the_epoch(alice, assistant):
    assert dismiss(alice, assistant).status_code == 204
    assert epoch(assistant) == 1
    found = public_assistant(assistant.pk)
    assert found is not None and found.guest_epoch == 1


def test_a_member_who_only_uses_it_is_403(bob, assistant):
    Assistant.objects.update(shared=True)
    assert dismiss(bob, assistant).status_code == 403
    assert epoch(assistant) == 0


def test_an_admin_may_where_it_is_shared(carol, assistant):
    assert dismiss(carol, assistant).status_code == 404
    Assistant.objects.update(shared=True)
    assert dismiss(carol, assistant).status_code == 204


def test_it_cannot_be_set_by_hand(alice, assistant):
    api(alice).patch(f"/api/v1/assistants/{assistant.pk}/", {"guest_epoch": 7})
    assert epoch(assistant) == 0


def test_an_assistant_that_is_not_public_takes_no_guests(assistant):
    Assistant.objects.update(public=False)
    assert public_assistant(assistant.pk) is None
