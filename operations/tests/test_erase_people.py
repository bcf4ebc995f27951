"""Test `me/erase/`: hidden at once, deleted in batches, nobody else touched; and the account."""

from typing import Any

import pytest
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.group_services import grant_right
from accounts.models import ApiKey, IdempotencyRecord, Membership, Organization, Role, User
from assistants.models import Assistant
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from chats.tests.rows import new_assistant, new_chat, new_turn, say
from chats.tests.turns.leftovers import furnish, is_gone, is_stored, new_stored_file, rows_in
from libraries.models import Embedding, File
from memory.facts.facts import Fact, remember
from memory.models import Memory
from memory.owner import Owner
from operations.maintenance.periodic_jobs import PERIODIC_JOBS
from operations.models import Erasure
from operations.privacy import person_erasure
from operations.privacy.person_erasure import erase, erase_people
from operations.tests.estate import Estate, embedder, enqueued
from providers.models import UsageRecord
from tests.fixtures.personas import OPERATOR, Persona, api, join, new_group
from tools.models import ToolCallRecord

ADDRESS = "/api/v1/me/erase/"

__all__ = ["embedder", "enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)


def ask(persona: Persona, **fields: Any) -> Any:
    return api(persona).post(ADDRESS, {"confirm": persona.user.email} | fields)


def finish() -> None:
    for _ in range(5):
        erase_people()


def test_it_must_be_meant_and_in_person(alice):
    _, secret = alice.new_key()
    for body in ({}, {"confirm": ""}, {"confirm": "bob@example.com"}):
        answer = api(alice).post(ADDRESS, body)
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["confirm"])
    assert api(key=secret).post(ADDRESS, {"confirm": alice.user.email}).status_code == 403
    assert not Erasure.objects.exists()
    assert api(alice).get(ADDRESS).json()["state"] == "none"


def test_everything_is_out_of_sight_at_once(alice, embedder, enqueued):
    left = Estate(alice, embedder)
    answer = ask(alice, confirm=f" {alice.user.email.upper()} ")
    assert answer.status_code == 202
    assert answer.json()["state"] == "running"
    assert enqueued == ["erase_people", "libraries"]
    client = api(alice)
    for address in (
        f"/api/v1/chats/{left.chat.pk}/",
        f"/api/v1/files/{left.file.pk}/",
        f"/api/v1/memories/{left.memory.pk}/",
        f"/api/v1/turns/{left.stateless.pk}/manifest/",
        f"/api/v1/assistants/{left.private[0].pk}/",
        f"/api/v1/tools/{left.private[1].pk}/",
        f"/api/v1/libraries/{left.private[2].pk}/",
    ):
        assert client.get(address).status_code == 404, address
    assert api(key=left.secret).get("/api/v1/me/").status_code == 401
    assert not IdempotencyRecord.objects.exists()


def test_then_it_is_deleted_and_what_was_shared_stays(alice, bob, embedder):
    left = Estate(alice, embedder)
    file_in_chat = ChatMessage.objects.get(chat=left.chat, role="file").file
    ask(alice)
    finish()
    assert api(alice).get(ADDRESS).json()["state"] == "done"
    assert is_gone(left.chat)
    assert not any(is_stored(file) for file in (left.file, file_in_chat))  # type: ignore[arg-type]
    for model in (Turn, Memory, File, ApiKey, ToolCallRecord, Embedding, MessageBlock):
        assert not model.objects.exists(), model
    for row in left.private:
        assert not type(row).objects.filter(pk=row.pk).exists(), row
    for row in left.shared:
        row.refresh_from_db()
        assert row.user is None
    assert api(bob).get(f"/api/v1/assistants/{left.shared[0].pk}/").status_code == 200
    left.usage.refresh_from_db()
    assert (left.usage.user, left.usage.prompt_tokens) == (None, 7)
    assert User.objects.get(pk=alice.user.pk).is_active


def test_what_was_shared_with_a_group_stays_for_it(alice, bob, carol, embedder):
    left = Estate(alice, embedder)
    group = new_group("Support", bob)
    granted = left.private[:3]
    for row in granted:
        grant_right(row, group=group, right="use", by=OPERATOR)
    ask(alice)
    finish()
    for row, kind in zip(granted, ("assistants", "tools", "libraries"), strict=True):
        row.refresh_from_db()
        assert row.user is None
        address = f"/api/v1/{kind}/{row.pk}/"
        assert api(bob).get(address).json()["access"] == "use"
        assert api(carol).get(address).json()["access"] == "own"
        assert api(alice).get(address).json()["access"] == "own"  # an owner of the organization


def test_nobody_elses_rows_are_touched(alice, bob, mallory, embedder):
    Estate(alice, embedder)
    others = [Estate(persona, embedder) for persona in (bob, mallory)]
    elsewhere = Persona(
        alice.user, Organization.objects.get(memberships__user=alice.user, personal=True), "owner"
    )
    others.append(Estate(elsewhere, embedder))
    before = [rows_in(other.chat) for other in others]
    ask(alice)
    finish()
    assert [rows_in(other.chat) for other in others] == before
    for other in others:
        rows = (other.memory, other.file, other.key, other.usage, *other.private, *other.shared)
        for row in rows:
            owner = row.user
            row.refresh_from_db()
            assert row.user == owner is not None
        assert is_stored(other.file)
        assert other.key.revoked_at is None


def test_guests_of_a_key_are_other_people(alice, embedder):
    chat = new_chat(alice, owner="guest", guest_id="g1")
    say(chat)
    ask(alice)
    finish()
    assert not is_gone(chat)


def test_what_comes_after_stays(alice, embedder):
    Estate(alice, embedder)
    ask(alice)
    chat = new_chat(alice)
    question = say(chat, "I like tea")
    fact = Fact("The user likes tea", evidence=[question.pk])
    memory, _ = remember(Owner.of(alice.principal), fact)
    file = new_stored_file(alice)
    UsageRecord.objects.create(
        organization=alice.organization, user=alice.user, model="m", prompt_tokens=1
    )
    finish()
    assert list(Chat.objects.all()) == [chat]
    assert list(Memory.objects.all()) == [memory]
    assert list(File.objects.all()) == [file]
    assert UsageRecord.objects.filter(user=alice.user).count() == 1


def test_what_a_stopped_turn_wrote_last_goes_too(alice):
    chat = new_chat(alice)
    question = say(chat, "Remember that I like tea")
    turn = new_turn(chat, status="running", fence=1)
    ask(alice)
    turn.refresh_from_db()
    assert turn.cancel_requested_at is not None
    remember(Owner.of(alice.principal), Fact("The user likes tea", evidence=[question.pk]))
    finish()
    assert not Memory.objects.exists()
    assert is_gone(chat)


def test_so_does_what_its_tool_kept_after_all_was_deleted(alice):
    chat = new_chat(alice)
    question = say(chat, "Remember that I like tea")
    ask(alice)
    finish()
    assert api(alice).get(ADDRESS).json()["state"] == "done"
    owner = Owner.of(alice.principal)
    remember(owner, Fact("The user likes tea", evidence=[question.pk]))
    said_since = say(new_chat(alice), "Remember that I like rum")
    kept, _ = remember(owner, Fact("The user likes rum", evidence=[said_since.pk]))
    erase_people()
    assert list(Memory.objects.all()) == [kept]


def test_asking_twice_is_asking_once(alice):
    first, second = ask(alice).json(), ask(alice).json()
    assert first == second
    assert Erasure.objects.count() == 1
    finish()
    assert ask(alice).json()["asked_at"] != first["asked_at"]


def test_it_goes_on_where_time_ran_out(alice, embedder, monkeypatch):
    Estate(alice, embedder)
    for _ in range(3):
        furnish(new_chat(alice, assistant=new_assistant(alice)), alice)
    monkeypatch.setattr(person_erasure, "CHATS_AT_ONCE", 1)
    monkeypatch.setattr(person_erasure, "ROWS_AT_ONCE", 1)
    ask(alice)
    erasure = Erasure.objects.get()
    rounds = 0
    while not erase(erasure, slice_seconds=0):
        rounds += 1
        assert api(alice).get(ADDRESS).json()["state"] == "running"
        assert rounds < 100
    assert rounds > 3
    assert api(alice).get(ADDRESS).json()["state"] == "done"
    assert not Chat.objects.filter(user=alice.user).exists()


def test_a_periodic_job_does_it():
    assert import_string(PERIODIC_JOBS["erase_people"].run) is erase_people
    assert {"expire_old_chats", "remove_expired_chats"} <= set(PERIODIC_JOBS)


# -- The account -----------------------------------------------------------------------------------


def test_the_only_owner_of_a_shared_organization_is_refused_in_words(alice):
    answer = ask(alice, account=True)
    assert answer.status_code == 409
    assert "Acme" in answer.json()["error"]["message"]
    assert not Erasure.objects.exists()
    assert User.objects.get(pk=alice.user.pk).is_active


def test_an_account_goes_with_its_personal_organization(alice, bob, embedder):
    personal = Organization.objects.get(memberships__user=bob.user, personal=True)
    at_home = Persona(bob.user, personal, Role.OWNER)
    here, home, other = Estate(bob, embedder), Estate(at_home, embedder), Estate(alice, embedder)
    before = rows_in(other.chat)
    client = api(bob)
    answer = client.post(ADDRESS, {"confirm": bob.user.email, "account": True})
    assert answer.status_code == 202
    assert client.get("/api/v1/me/").status_code == 401
    assert not Membership.objects.filter(user=bob.user, organization=alice.organization).exists()
    finish()
    assert not User.objects.filter(pk=bob.user.pk).exists()
    assert not Organization.objects.filter(pk=personal.pk).exists()
    assert not Erasure.objects.exists()
    assert is_gone(here.chat)
    assert is_gone(home.chat)
    assert not any(is_stored(estate.file) for estate in (here, home))
    for row in here.shared:
        row.refresh_from_db()
        assert row.user is None
    for row in home.shared:
        assert not type(row).objects.filter(pk=row.pk).exists()
    here.usage.refresh_from_db()
    assert (here.usage.user, here.usage.prompt_tokens) == (None, 7)
    assert rows_in(other.chat) == before
    assert is_stored(other.file)


def test_what_was_under_way_as_an_account_was_closed_goes_with_its_bytes(alice, bob):
    assert ask(bob, account=True).status_code == 202
    late = new_stored_file(bob)
    chat = new_chat(bob)
    say(chat, "A request of before was faster", role="file", file=late)
    finish()
    assert not User.objects.filter(pk=bob.user.pk).exists()
    assert not is_stored(late)
    assert is_gone(chat)


def test_an_owner_beside_another_may_go(alice):
    dora = join("dora", alice.organization, Role.OWNER)
    assert ask(dora, account=True).status_code == 202
    assert ask(alice, account=True).status_code == 409
    finish()
    assert not User.objects.filter(pk=dora.user.pk).exists()
    assert Membership.objects.filter(organization=alice.organization).count() == 1


def test_what_was_left_in_organizations_they_left_goes_too(alice, bob):
    chat = new_chat(bob)
    say(chat)
    Membership.objects.filter(user=bob.user, organization=alice.organization).delete()
    personal = Organization.objects.get(memberships__user=bob.user, personal=True)
    assert ask(Persona(bob.user, personal, Role.OWNER), account=True).status_code == 202
    finish()
    assert is_gone(chat)


def test_the_assistant_of_a_chat_that_others_keep_is_let_go_in_batches(
    alice, bob, embedder, monkeypatch
):
    monkeypatch.setattr(person_erasure, "ROWS_AT_ONCE", 2)
    assistant = new_assistant(alice, public=True)
    chat = new_chat(bob, assistant=assistant)
    for _ in range(5):
        say(chat, "Hello", role="assistant", assistant=assistant)
    ask(alice)
    assert not Assistant.objects.filter(pk=assistant.pk, public=True).exists()
    finish()
    chat.refresh_from_db()
    assert chat.assistant is None
    assert ChatMessage.objects.filter(chat=chat, assistant__isnull=True).count() == 5
    assert not Assistant.objects.filter(pk=assistant.pk).exists()


def test_an_erasure_is_seen_by_its_person_alone(alice, bob):
    ask(alice)
    assert api(bob).get(ADDRESS).json()["state"] == "none"
    Erasure.objects.update(ended_at=timezone.now())
    assert api(alice).get(ADDRESS).json()["state"] == "done"
