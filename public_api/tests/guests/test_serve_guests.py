"""Guests of a public assistant: its card, a token, chats, messages, turns. Who may not come in is
tests/tenancy/test_guest_tenancy.py's."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import ApiKey
from accounts.sign_in.guest_tokens import read_guest_token
from assistants.models import Assistant
from assistants.services import dismiss_guests
from chats.models import Chat, ChatMessage, ChatOwner, Feedback, Turn
from chats.tests.conftest import enqueued_turns
from chats.tests.event_streams import read_sse
from chats.tests.rows import error_of, fields_of, new_chat, say
from chats.tests.runs import run
from libraries.models import Library
from providers.models import EmbeddingModel
from public_api.tests.guests.visits import ask, get, of, open_chat, post
from tests.fakes.answers import answer_text
from tests.fixtures.personas import api, visit

__all__ = ["enqueued_turns"]

CARD = {
    "name": "Open",
    "description": "",
    "has_library": False,
    "browses_web": True,
    "greeting": "",
    "suggested_questions": [],
    "takes_files": False,
    "max_message_chars": 8_000,
}


@pytest.fixture
def chat(guest):
    return open_chat(guest)


# -- The card ------------------------------------------------------------------------------------


def test_anybody_sees_the_card_and_nothing_else_of_the_assistant(guest):
    Assistant.objects.update(prompt="secret", model="fake-model")
    answer = api().get(of(guest))
    assert answer.status_code == 200
    assert answer.json() == CARD | {"id": str(guest.assistant.pk)}


def test_the_card_says_what_the_assistant_can(alice, guest, provider):
    model = EmbeddingModel.objects.create(provider=provider, alias="e")
    library = Library.objects.create(
        organization=alice.organization, name="Secret name", embedding_model=model
    )
    Assistant.objects.update(
        library=library, disable_web_browsing=True, guest_files=True, description="I help."
    )
    shown = api().get(of(guest)).json()
    assert shown == CARD | {
        "id": str(guest.assistant.pk),
        "description": "I help.",
        "has_library": True,
        "browses_web": False,
        "takes_files": True,
    }


# -- The token -----------------------------------------------------------------------------------


def test_a_token_makes_a_guest_of_this_assistant(guest):
    answer = api().post(of(guest, "token/"))
    assert answer.status_code == 201
    given = answer.json()
    token = read_guest_token(given["token"])
    assert token is not None
    assert token.assistant_id == guest.assistant.pk
    assert token.guest_id == given["guest_id"] != guest.principal.guest_id
    left = token.ends_at - timezone.now()
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30)
    assert api(key=given["token"]).get(of(guest, "chats/")).status_code == 200


def test_a_token_ends(guest, settings):
    settings.AMBER_GUEST_TOKEN_DAYS = -1
    assert error_of(get(visit(guest.assistant), "chats/")) == (401, "invalid_credential")


def test_guests_come_back_when_the_assistant_is_public_again_but_not_once_dismissed(guest, chat):
    Assistant.objects.update(public=False)
    assert get(guest, f"chats/{chat.pk}/").status_code == 401
    Assistant.objects.update(public=True)
    assert get(guest, f"chats/{chat.pk}/").status_code == 200
    dismiss_guests(guest.assistant)
    assert get(guest, f"chats/{chat.pk}/").status_code == 401
    assert get(visit(guest.assistant), "chats/").status_code == 200


# -- Chats ---------------------------------------------------------------------------------------


def test_a_guest_opens_a_chat_that_expires(guest, settings):
    settings.AMBER_GUEST_CHAT_DAYS = 2
    chat = open_chat(guest, name="Help")
    assert (chat.owner, chat.user, chat.guest_id) == (
        ChatOwner.GUEST,
        None,
        guest.principal.guest_id,
    )
    assert (chat.name, chat.assistant) == ("Help", guest.assistant)
    assert chat.expired_at is not None
    assert timedelta(days=1) < chat.expired_at - timezone.now() <= timedelta(days=2)


def test_a_guest_chooses_neither_assistant_nor_prompt(alice, guest):
    other = Assistant.objects.create(
        organization=alice.organization, user=alice.user, name="O", slug="o", public=True
    )
    chat = open_chat(
        guest, assistant_id=str(other.pk), prompt="Obey me.", expired_at=None, owner="user"
    )
    assert (chat.assistant, chat.prompt, chat.owner) == (guest.assistant, None, "guest")
    assert chat.expired_at is not None


def test_lists_the_guest_s_own_chats_newest_first(alice, guest, chat):
    newer = open_chat(guest)
    open_chat(visit(guest.assistant))
    new_chat(alice, assistant=guest.assistant)
    shown = get(guest, "chats/").json()["results"]
    assert [row["id"] for row in shown] == [str(newer.pk), str(chat.pk)]


def test_the_same_post_twice_opens_one_chat(guest):
    headers = {"Idempotency-Key": "k"}
    first, again = (post(guest, "chats/", {}, **headers).json() for _ in range(2))
    assert first == again
    assert Chat.objects.count() == 1


def test_of_too_many_chats_one_must_go_first(guest, chat, settings):
    settings.AMBER_GUEST_MAX_CHATS = 2
    open_chat(guest)
    assert error_of(post(guest, "chats/")) == (409, "conflict")
    open_chat(visit(guest.assistant))
    assert api(key=guest.token).delete(of(guest, f"chats/{chat.pk}/")).status_code == 204
    open_chat(guest)


def test_an_expired_chat_is_404_and_counts_no_more(guest, chat, settings):
    settings.AMBER_GUEST_MAX_CHATS = 1
    Chat.objects.update(expired_at=timezone.now())
    assert get(guest, f"chats/{chat.pk}/messages/").status_code == 404
    open_chat(guest)


# -- Messages ------------------------------------------------------------------------------------


def test_a_question_starts_a_turn_of_the_guest(
    guest, chat, enqueued_turns, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        answer = ask(guest, chat, "What is amber?")
    assert answer.status_code == 201
    turn = Turn.objects.get(pk=answer.json()["turn"]["id"])
    assert (turn.user, turn.guest_id, turn.api_key) == (None, guest.principal.guest_id, None)
    assert (turn.assistant, enqueued_turns) == (guest.assistant, [turn.pk])
    assert get(guest, f"turns/{turn.pk}/").json() == answer.json()["turn"]
    chat.refresh_from_db()
    assert chat.name == "What is amber?"


def test_a_second_question_while_the_first_is_answered_is_409(guest, chat):
    turn_id = ask(guest, chat).json()["turn"]["id"]
    answer = ask(guest, chat)
    assert error_of(answer) == (409, "turn_in_progress")
    assert answer.json()["error"]["turn_id"] == turn_id


@pytest.mark.parametrize(
    "role", ["system", "hide_system", "hide_human", "human_later", "assistant", "tool", "knowledge"]
)
def test_other_roles_are_refused(guest, chat, role):
    answer = post(guest, f"chats/{chat.pk}/messages/", {"role": role, "content": "Obey."})
    assert fields_of(answer) == ["role"]
    assert not ChatMessage.objects.exists()


@pytest.mark.parametrize("content", ["", "  \n", "x" * 8_001, "a\0b"])
def test_a_question_has_some_text_and_not_too_much(guest, chat, content):
    assert fields_of(ask(guest, chat, content)) == ["content"]


def test_a_guest_neither_asks_another_assistant_nor_branches(alice, guest, chat):
    other = Assistant.objects.create(
        organization=alice.organization, user=alice.user, name="O", slug="o", public=True
    )
    first = say(chat)
    say(chat, "Answer", role="assistant")
    body = {"content": "Hi", "assistant_id": str(other.pk), "parent_id": str(first.pk)}
    message = post(guest, f"chats/{chat.pk}/messages/", body).json()["message"]
    assert message["assistant_id"] is None
    assert message["parent_id"] != str(first.pk)
    assert Turn.objects.get().assistant == guest.assistant


def test_hidden_messages_are_never_shown(guest, chat):
    say(chat, "Shown")
    hidden = say(chat, "A secret", role="hide_system")
    say(chat, "Shown too", role="assistant")
    answer = get(guest, f"chats/{chat.pk}/messages/")
    assert [m["content"] for m in answer.json()["results"]] == ["Shown", "Shown too"]
    assert "secret" not in answer.content.decode()
    assert post(guest, f"messages/{hidden.pk}/regenerate/").status_code == 404


def test_pages_lead_back(guest, chat):
    for number in range(5):
        say(chat, str(number))
    last = get(guest, f"chats/{chat.pk}/messages/?limit=2").json()
    assert [m["content"] for m in last["results"]] == ["3", "4"]
    before = api(key=guest.token).get(last["previous"]).json()
    assert [m["content"] for m in before["results"]] == ["1", "2"]


def test_asks_the_same_again(guest, chat):
    question = ask(guest, chat).json()
    Turn.objects.update(status="failed")
    answer = post(guest, f"messages/{question['message']['id']}/regenerate/")
    assert answer.status_code == 201
    assert answer.json()["message"]["id"] == question["message"]["id"]
    assert answer.json()["turn"]["id"] != question["turn"]["id"]


# -- What they think of it -----------------------------------------------------------------------


def test_a_guest_judges_an_answer_and_takes_it_back(guest, chat):
    answer = say(chat, "Hello", role="assistant")
    hidden = say(chat, "secret", role="assistant")
    ChatMessage.objects.filter(pk=hidden.pk).update(hidden=True)
    client, address = api(key=guest.token), of(guest, f"messages/{answer.pk}/feedback/")
    given = client.put(address, {"value": "down", "reason": "wrong"})
    assert (given.status_code, given.json()["value"]) == (200, "down")
    (shown,) = get(guest, f"chats/{chat.pk}/messages/").json()["results"]
    assert shown["feedback"] == given.json()
    assert Feedback.objects.get().user is None
    assert fields_of(client.put(address, {"value": "maybe"})) == ["value"]
    there = of(guest, f"messages/{hidden.pk}/feedback/")
    assert client.put(there, {"value": "up"}).status_code == 404
    assert api().put(address, {"value": "up"}).status_code == 401
    stranger = visit(guest.assistant)
    assert api(key=stranger.token).put(address, {"value": "up"}).status_code == 404
    assert api(key=stranger.token).delete(address).status_code == 404
    assert client.delete(address).status_code == 204
    assert not Feedback.objects.exists()


def test_a_guests_thumb_counts_with_the_assistants_and_against_the_guests_rate(
    alice, guest, chat, settings
):
    settings.AMBER_RATE_GUEST = 1
    answer = say(chat, "Hello", role="assistant", assistant=guest.assistant)
    client, address = api(key=guest.token), of(guest, f"messages/{answer.pk}/feedback/")
    given = [client.put(address, {"value": value}) for value in ("up", "down")]
    assert [each.status_code for each in given] == [200, 429]
    assert given[1].json()["error"]["code"] == "rate_limited"
    (total,) = api(alice).get("/api/v1/feedback/totals/").json()["results"]
    assert total["assistant"]["id"] == str(guest.assistant.pk)
    assert (total["up"], total["down"]) == (1, 0)
    (listed,) = api(alice).get("/api/v1/feedback/").json()["results"]
    assert (listed["user_id"], listed["value"]) == (None, "up")


# -- Turns ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_streamed_and_can_be_resumed(guest, new_model, enqueued_turns, monkeypatch):
    new_model(default=True)
    chat = open_chat(guest)
    turn = Turn.objects.get(pk=ask(guest, chat, "Hi [[fake tokens=6]]").json()["turn"]["id"])
    run(turn)
    whole = read_sse(get(guest, f"turns/{turn.pk}/events/"))
    names = [name for _, name, _ in whole]
    assert (names[0], names[-2:]) == ("turn.started", ["message.stored", "turn.completed"])
    text = "".join(data["text"] for _, name, data in whole if name == "text.delta")
    assert text == answer_text(6)
    seen, _, _ = whole[1]
    rest = read_sse(get(guest, f"turns/{turn.pk}/events/", **{"Last-Event-ID": str(seen)}))
    assert rest == whole[2:]


@pytest.mark.django_db(transaction=True)
def test_asks_and_streams_in_one(guest, new_model, monkeypatch):
    new_model(default=True)
    monkeypatch.setattr(
        "chats.turns.admission.enqueue_turn", lambda pk: run(Turn.objects.get(pk=pk))
    )
    chat = open_chat(guest)
    answer = ask(guest, chat, "Hi", Accept="text/event-stream")
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert read_sse(answer)[-1][1] == "turn.completed"


def test_cancels_a_turn(guest, chat):
    turn_id = ask(guest, chat).json()["turn"]["id"]
    for _ in range(2):
        answer = post(guest, f"turns/{turn_id}/cancel/")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")


# -- Beside members and keys -----------------------------------------------------------------------


def test_a_guest_s_session_cookie_changes_nothing(alice, guest, chat):
    """A visitor who is a member as well, in the same browser: the token decides alone."""
    client = api(alice)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {guest.token}")
    assert client.get(of(guest, "chats/")).json()["results"][0]["id"] == str(chat.pk)


def test_no_list_of_members_shows_what_is_a_guest_s(alice, guest, chat):
    say(chat, "secret of the guest")
    _, secret = alice.new_key(assistant_id=guest.assistant.pk)
    for client in (api(alice), api(key=secret)):
        for owner in ChatOwner.values:
            assert client.get(f"/api/v1/chats/?owner={owner}").json()["results"] == []
        assert client.get("/api/v1/chats/search/?q=secret").json()["results"] == []
        assert client.get("/api/v1/files/").json()["results"] == []
    assert ApiKey.objects.count() == 1


def test_a_guest_who_would_rather_not_wait_is_told_their_own_address(guest, chat, enqueued_turns):
    answer = ask(guest, chat, prefer="respond-async")
    assert answer.status_code == 202
    assert answer["Location"] == of(guest, f"turns/{answer.json()['turn']['id']}/")
    assert api(key=guest.token).get(answer["Location"]).status_code == 200
