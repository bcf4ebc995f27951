"""Test streams of viewers whose credential is no longer valid, and turns nobody waits for."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from accounts.key_services import revoke_api_key
from accounts.models import ApiKey, Membership, User
from accounts.services import remove_member
from accounts.sign_in.credentials import credential_of
from amber.lib.database.tenant import as_tenant
from chats import services
from chats.events import viewers
from chats.models import Turn
from chats.tests.event_streams import read_parts
from chats.tests.rows import of_turn
from chats.tests.runs import ask
from tests.fixtures.personas import OPERATOR, api

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def watchful(monkeypatch, settings):
    monkeypatch.setattr("chats.events.viewers.WELCOME_SECONDS", 0.05)
    settings.AMBER_STREAM_HEARTBEAT_SECONDS = 0.1


def cut_off(response: Any, unwelcome: Any) -> bool:
    """Return whether the stream of this turn, which nobody runs, ends once that has happened."""
    assert response.status_code == 200
    ended = threading.Event()

    def read() -> None:
        try:
            read_parts(response)
            ended.set()
        finally:
            connections.close_all()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert not ended.wait(0.5), "it ended although all was well"
    unwelcome()
    return ended.wait(20)


def test_a_revoked_keys_stream_ends(alice, new_model):
    new_model()
    key, secret = alice.new_key()
    response = api(key=secret).get(of_turn(ask(alice), "events/"))
    assert cut_off(response, lambda: revoke_api_key(key, by=OPERATOR))
    assert Turn.objects.get().status == "queued"


def test_a_posted_questions_stream_ends_too(alice, new_model, assistant):
    key, secret = alice.new_key()
    client = api(key=secret)
    chat = client.post("/api/v1/chats/", {"assistant_id": str(assistant.pk)}).json()["id"]
    accept = {"Accept": "text/event-stream"}
    path = f"/api/v1/chats/{chat}/messages/"
    response = client.post(path, {"content": "Hi"}, headers=accept)
    expire = ApiKey.objects.filter(pk=key.pk).update
    assert cut_off(response, lambda: expire(expires_at=timezone.now() - timedelta(seconds=1)))


def test_a_deactivated_users_session_stream_ends(bob, new_model):
    new_model()
    response = api(bob).get(of_turn(ask(bob), "events/"))
    assert cut_off(response, lambda: User.objects.filter(pk=bob.user.pk).update(is_active=False))


@pytest.mark.parametrize("how", ["signed out", "expired", "password changed", "removed"])
def test_the_stream_of_a_session_ends_with_it(alice, bob, new_model, how):
    new_model()
    here = api(bob)
    response = here.get(of_turn(ask(bob), "events/"))

    def end() -> None:
        match how:
            case "signed out":
                here.logout()
            case "expired":
                Session.objects.filter(pk=here.session.session_key).update(expire_date=LONG_AGO)
            case "password changed":
                bob.user.set_password("another long sentence")
                bob.user.save()
            case "removed":
                member = Membership.objects.get(user=bob.user, organization=bob.organization)
                remove_member(member, by=alice.principal)

    assert cut_off(response, end)


def test_another_session_of_theirs_streams_on(bob, new_model):
    new_model()
    here, elsewhere = api(bob), api(bob)
    turn = ask(bob)
    response = here.get(of_turn(turn, "events/"))
    elsewhere.logout()
    assert cut_off(response, here.logout)


def test_viewers_are_looked_after_whoever_came_first(alice, mallory, new_model):
    """The hub's tasks begin with the first viewer, and so act for that one's tenant."""
    new_model()
    known = [credential_of(each.principal) for each in (alice, mallory)]
    watching = {each for each in known if each is not None}
    assert len(watching) == 2
    turns = {ask(each).pk for each in (alice, mallory)}
    with as_tenant(alice.principal.tenant):
        assert asyncio.run(viewers.find_valid(watching)) == watching
        assert set(asyncio.run(viewers._states(turns))) == turns


def test_an_operator_who_signs_out_tries_no_assistant_on(bob, new_model, assistant):
    User.objects.filter(pk=bob.user.pk).update(is_staff=True, is_superuser=True)
    client = api(bob)
    path = reverse("admin:chats_try_assistant", args=[assistant.pk])
    response = client.post(path, {"content": "Hi"}, format="multipart")
    assert cut_off(response, client.logout)


def unwanted(turn: Turn) -> bool:
    row: Any = Turn.objects.filter(pk=turn.pk).annotate_unwanted().get()
    return bool(row.is_unwanted)


@pytest.mark.parametrize("how", ["revoked", "expired", "deactivated"])
def test_what_no_chat_keeps_is_not_wanted_without_its_key(alice, how):
    key, _ = alice.new_key()
    principal = type(alice.principal)(alice.organization.pk, alice.user, key=key)
    asked = [{"role": "human", "content": "Hi"}]
    stateless = services.start_stateless_turn(principal, messages=asked)
    kept = ask(alice)
    Turn.objects.filter(pk=kept.pk).update(api_key=key)
    assert not unwanted(stateless)
    match how:
        case "revoked":
            revoke_api_key(key, by=OPERATOR)
        case "expired":
            past = timezone.now() - timedelta(seconds=1)
            ApiKey.objects.filter(pk=key.pk).update(expires_at=past)
        case "deactivated":
            User.objects.filter(pk=alice.user.pk).update(is_active=False)
    assert unwanted(stateless)
    assert not unwanted(kept)


def test_what_somebody_cancelled_is_not_wanted(alice):
    turn = ask(alice)
    Turn.objects.filter(pk=turn.pk).update(cancel_requested_at=timezone.now())
    assert unwanted(turn)
