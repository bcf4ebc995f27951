"""Guest tokens: what was given out is read, and nothing else."""

import base64
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.registry import PublicAssistant
from accounts.sign_in.guest_tokens import MARK, new_guest_token, read_guest_token
from amber.lib.secrets import add_mac
from tests.fixtures.secret_keys import new_secret_key

OPEN = PublicAssistant(uuid4(), uuid4(), guest_epoch=3)


def replaced(**fields: Any) -> PublicAssistant:
    given = {name: getattr(OPEN, name) for name in ("id", "organization_id", "guest_epoch")}
    return PublicAssistant(**{**given, **fields})


def test_what_was_given_out_is_read():
    token, text = new_guest_token(OPEN)
    assert read_guest_token(text) == token
    assert token.is_for(OPEN)
    assert (token.organization_id, token.assistant_id) == (OPEN.organization_id, OPEN.id)
    assert text.startswith(MARK) and text.isascii()


def test_every_guest_is_another():
    ids = {new_guest_token(OPEN)[0].guest_id for _ in range(10)}
    assert len(ids) == 10
    assert all(guest_id.startswith("web:") for guest_id in ids)


@pytest.mark.parametrize(
    "other", [{"id": uuid4()}, {"organization_id": uuid4()}, {"guest_epoch": 4}, {"guest_epoch": 2}]
)
def test_it_is_for_that_assistant_and_that_epoch_only(other):
    token, _ = new_guest_token(OPEN)
    assert not token.is_for(replaced(**other))
    assert not token.is_for(None)


def test_any_other_letter_spoils_it():
    _, text = new_guest_token(OPEN)
    for place in range(len(MARK), len(text)):
        letter = "A" if text[place] != "A" else "B"
        changed = read_guest_token(text[:place] + letter + text[place + 1 :])
        # The last letter has bits that say nothing.
        assert changed is None or place == len(text) - 1


@given(st.text())
def test_rubbish_is_none(text):
    assert read_guest_token(text) is None
    assert read_guest_token(MARK + text) is None


def test_one_that_has_ended_is_none(settings):
    settings.AMBER_GUEST_TOKEN_DAYS = -0.001
    assert read_guest_token(new_guest_token(OPEN)[1]) is None


def test_it_lives_as_long_as_the_setting_says(settings):
    settings.AMBER_GUEST_TOKEN_DAYS = 0.5
    token, _ = new_guest_token(OPEN)
    left = token.ends_at - timezone.now()
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)


def test_keys_may_be_changed_while_guests_are_there(settings):
    """A new key in front; the old one opens what it signed until it leaves the ring."""
    token, text = new_guest_token(OPEN)
    old = settings.AMBER_SECRET_KEYS
    settings.AMBER_SECRET_KEYS = (new_secret_key(), *old)
    assert read_guest_token(text) == token
    settings.AMBER_SECRET_KEYS = (new_secret_key(),)
    assert read_guest_token(text) is None


def test_what_was_authenticated_for_another_purpose_is_none():
    _, text = new_guest_token(OPEN)
    raw = base64.urlsafe_b64decode(text.removeprefix(MARK) + "==")
    other = add_mac(raw[:-32], purpose="something else")
    forged = MARK + base64.urlsafe_b64encode(other).decode().rstrip("=")
    assert read_guest_token(forged) is None
