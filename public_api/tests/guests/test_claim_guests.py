"""POST me/claim/: chats, files and memories of a guest become a member's."""

import pytest
from django.utils import timezone

from accounts.models import Organization
from amber.lib.workers.leases import StopReason
from assistants.models import Assistant
from assistants.services import dismiss_guests
from chats.models import Chat, ChatOwner, Turn
from chats.tests.conftest import enqueued_turns
from chats.tests.rows import error_of, fields_of, say
from chats.tests.runs import run, running
from chats.turns.sweep import sweep_turns
from libraries.models import File
from memory.facts.facts import Fact, remember, valid_of
from memory.owner import Owner
from providers.models import LanguageModel
from public_api.tests.guests.visits import ask, get, open_chat
from tests.fakes.answers import answer_text
from tests.fixtures.personas import api, visit

__all__ = ["enqueued_turns"]

CLAIM = "/api/v1/me/claim/"


def claim(persona, guest):
    return api(persona).post(CLAIM, {"token": guest.token})


@pytest.fixture
def left(guest):
    """A chat with a turn, a file and a memory."""
    chat = open_chat(guest)
    turn_id = ask(guest, chat, "My name is Ann.").json()["turn"]["id"]
    file = File.objects.create(
        organization=guest.assistant.organization,
        guest_id=guest.principal.guest_id,
        name="f",
        file_hash="0" * 64,
        mime_type="text/plain",
        path="f",
        size=1,
        expired_at=chat.expired_at,
    )
    remember(Owner.of(guest.principal), Fact("Their name is Ann."))
    return chat, Turn.objects.get(pk=turn_id), file


def test_a_member_takes_over_what_the_guest_left(bob, guest, left):
    chat, turn, file = left
    answer = claim(bob, guest)
    assert answer.status_code == 200
    assert answer.json() == {"chats": 1, "files": 1, "memories": 1}
    for row in (chat, turn, file):
        row.refresh_from_db()
        assert (row.user, row.guest_id) == (bob.user, None)
    assert (chat.owner, chat.expired_at, file.expired_at) == (ChatOwner.USER, None, None)
    assert valid_of(Owner.of(bob.principal)).get().content == "Their name is Ann."
    shown = api(bob).get(f"/api/v1/chats/{chat.pk}/messages/").json()["results"]
    assert [m["content"] for m in shown] == ["My name is Ann."]
    assert api(bob).get("/api/v1/chats/").json()["results"][0]["id"] == str(chat.pk)


def test_the_member_finds_it_by_its_words(bob, guest, left):
    claim(bob, guest)
    found = api(bob).get("/api/v1/chats/search/?q=Ann").json()["results"]
    assert [hit["message"]["content"] for hit in found] == ["My name is Ann."]


def test_the_guest_sees_it_no_more(bob, guest, left):
    claim(bob, guest)
    assert get(guest, "chats/").json()["results"] == []
    assert get(guest, f"chats/{left[0].pk}/messages/").status_code == 404
    assert get(guest, f"turns/{left[1].pk}/").status_code == 404


def test_claiming_again_finds_only_what_has_come_since(bob, guest, left):
    claim(bob, guest)
    assert claim(bob, guest).json() == {"chats": 0, "files": 0, "memories": 0}
    open_chat(guest)
    assert claim(bob, guest).json() == {"chats": 1, "files": 0, "memories": 0}


def test_what_has_expired_stays_gone(bob, guest, left):
    chat, _, file = left
    for row in (chat, file):
        row.expired_at = timezone.now()
        row.save()
    told = claim(bob, guest).json()
    assert (told["chats"], told["files"]) == (0, 0)
    assert error_of(api(bob).get(f"/api/v1/chats/{chat.pk}/")) == (404, "not_found")


def test_nobody_claims_what_another_has(alice, bob, guest, left):
    claim(bob, guest)
    assert claim(alice, guest).json()["chats"] == 0
    assert Chat.objects.get().user == bob.user


def test_what_another_guest_left_stays(bob, guest, left):
    other = visit(guest.assistant)
    open_chat(other)
    claim(bob, guest)
    assert Chat.objects.filter(guest_id=other.principal.guest_id).count() == 1


def test_a_turn_that_runs_belongs_to_the_member_too(bob, guest, left):
    Turn.objects.update(status="running")
    claim(bob, guest)
    assert api(bob).get(f"/api/v1/turns/{left[1].pk}/").json()["status"] == "running"
    assert error_of(ask_as_member(bob, left[0])) == (409, "turn_in_progress")


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_runs_is_answered_to_the_member(bob, guest, new_model):
    """Its worker acts for the guest. Postgres would show it nothing more, and the guest's word would hide the answer."""
    new_model("fake-hang-mid", default=True)
    turn = Turn.objects.get(
        pk=ask(guest, open_chat(guest), "[[fake tokens=6]]").json()["turn"]["id"]
    )
    with running(turn) as first:
        first.wait_for_text()
        claim(bob, guest)
        assert sweep_turns() == [turn.pk], "at once, not when a lease has run out"
        first.stop(StopReason.FENCED)
    assert first.status == [None]
    assert (turn.status, turn.user) == ("queued", bob.user)
    LanguageModel.objects.update(upstream_id="fake-model")
    assert run(turn, "w2") == "completed"
    answer = answer_text(6)
    found = api(bob).get(f"/api/v1/chats/search/?q={answer.split()[0]}").json()["results"]
    assert [hit["message"]["content"] for hit in found] == [answer]


def ask_as_member(persona, chat):
    return api(persona).post(f"/api/v1/chats/{chat.pk}/messages/", {"content": "And?"})


def test_acts_in_the_assistant_s_organization_whichever_is_active(bob, guest, left):
    personal = Organization.objects.get(personal=True, memberships__user=bob.user)
    client = api(bob)
    client.put("/api/v1/me/organization/", {"organization_id": str(personal.pk)})
    assert client.post(CLAIM, {"token": guest.token}).json()["chats"] == 1
    assert Chat.objects.get().organization == bob.organization


def test_a_stranger_to_the_organization_is_403_and_nothing_moves(mallory, guest, left):
    answer = claim(mallory, guest)
    assert error_of(answer) == (403, "forbidden")
    assert "invitation" in answer.json()["error"]["message"]
    assert Chat.objects.get().guest_id == guest.principal.guest_id


@pytest.mark.parametrize("text", ["", "amb_guest_", "x", "amb_guest_" + "A" * 160, "A" * 401])
def test_what_is_no_token_is_400(bob, guest, left, text):
    answer = api(bob).post(CLAIM, {"token": text})
    assert fields_of(answer) == ["token"]


def test_a_token_that_counts_no_more_claims_nothing(bob, guest, left):
    Assistant.objects.update(public=False)
    assert fields_of(claim(bob, guest)) == ["token"]
    Assistant.objects.update(public=True)
    dismiss_guests(guest.assistant)
    assert fields_of(claim(bob, guest)) == ["token"]


def test_a_key_may_not(bob, guest, left):
    _, secret = bob.new_key()
    assert api(key=secret).post(CLAIM, {"token": guest.token}).status_code == 403


def test_a_guest_whom_a_program_named_is_not_claimed(alice, bob, guest, left):
    """Its rows have somebody's key behind them."""
    chat = Chat.objects.get()
    Chat.objects.update(user=alice.user)
    say(chat)
    assert claim(bob, guest).json()["chats"] == 0
