"""Test how answers are sent: as JSON or as the turn's events, and once per Idempotency-Key."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import IdempotencyRecord
from chats.models import ChatMessage, Turn
from chats.services import cancel_turn
from chats.tests.event_streams import read_sse
from chats.tests.rows import (
    ALL,
    converse,
    error_of,
    fields_of,
    messages,
    new_chat,
    new_turn,
    of_message,
    say,
)
from tests.fixtures.personas import api

SSE = "text/event-stream"


def post(persona, chat, body, **headers):
    return api(persona).post(messages(chat), body, headers=headers)


def with_key(persona, chat, body, key="k-1", **headers):
    return post(persona, chat, body, **{"Idempotency-Key": key}, **headers)


# -- Once per key -------------------------------------------------------------------------------


def test_the_same_post_twice_starts_one_turn(alice, chat):
    first = with_key(alice, chat, {"content": "Hi"})
    again = with_key(alice, chat, {"content": "Hi"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json(), "also while that turn lives"
    assert (ChatMessage.objects.count(), Turn.objects.count()) == (1, 1)


def test_another_body_is_409(alice, chat):
    with_key(alice, chat, {"content": "Hi"})
    answer = with_key(alice, chat, {"content": "Ho"})
    assert error_of(answer) == (409, "idempotency_mismatch")


def test_a_request_not_yet_answered_is_409_with_retry_after(alice, chat):
    with_key(alice, chat, {"content": "Hi"})
    IdempotencyRecord.objects.update(status=None, answer=None)
    answer = with_key(alice, chat, {"content": "Hi"})
    assert error_of(answer) == (409, "idempotency_in_progress")
    assert answer.headers["Retry-After"] == "1"


def test_a_question_whose_web_process_died_is_asked_again_within_seconds(alice, chat):
    with_key(alice, chat, {"content": "Hi"})
    Turn.objects.all().delete()
    chat.messages.all().delete()
    for age_seconds, status in ((0, 409), (6, 201)):
        died_at = timezone.now() - timedelta(seconds=age_seconds)
        IdempotencyRecord.objects.update(status=None, answer=None, updated_at=died_at)
        assert with_key(alice, chat, {"content": "Hi"}).status_code == status
    assert Turn.objects.count() == 1


def test_a_refused_post_leaves_its_key_free(alice, chat):
    assert with_key(alice, chat, {"role": "tool", "content": "Hi"}).status_code == 400
    assert with_key(alice, chat, {"content": "Hi"}).status_code == 201
    assert with_key(alice, chat, {"content": "Ho"}, key="k-2").status_code == 409
    assert IdempotencyRecord.objects.count() == 1


def test_a_key_belongs_to_its_chat_and_person(alice, bob, chat, assistant):
    other = new_chat(alice, assistant=assistant)
    assert with_key(alice, chat, {"content": "Hi"}).status_code == 201
    assert with_key(alice, other, {"content": "Hi"}).status_code == 201
    assert with_key(bob, chat, {"content": "Hi"}).status_code == 404
    assert Turn.objects.count() == 2


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_bad_key_is_400(alice, chat, key):
    assert with_key(alice, chat, {"content": "Hi"}, key=key).status_code == 400


def test_every_post_that_starts_work_takes_a_key(alice, chat):
    question, answered = converse(chat, "Hi", "Hello")
    key = {"Idempotency-Key": "k-1"}
    client = api(alice)
    exported = {"messages": [{"role": "human", "content": "Hi"}]}
    for method, address, body in (
        (client.post, ALL, {"name": "x"}),
        (client.post, f"{ALL}import/", exported),
        (client.patch, of_message(question), {"content": "Ho"}),
        (client.post, of_message(answered, "regenerate/"), {}),
    ):
        first = method(address, body, headers=key)
        again = method(address, body, headers=key)
        assert (first.status_code, again.json()) == (201, first.json()), address
        Turn.objects.update(status="completed")
    assert Turn.objects.count() == 2


# -- JSON or events -------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html, */*;q=0.1"])
def test_json_is_the_default(alice, chat, accept):
    answer = post(alice, chat, {"content": "Hi"}, Accept=accept)
    assert answer.status_code == 201
    assert answer.headers["Content-Type"] == "application/json"


def test_a_type_that_is_neither_is_406(alice, chat):
    answer = post(alice, chat, {"content": "Hi"}, Accept="image/png")
    assert error_of(answer) == (406, "not_acceptable")
    assert not ChatMessage.objects.exists()


def test_errors_are_json_whatever_was_asked_for(alice, mallory, chat):
    for answer, expected in (
        (post(alice, chat, {"content": ""}, Accept=SSE), (400, "invalid")),
        (post(alice, chat, {"role": "tool"}, Accept=SSE), (400, "role_not_allowed")),
        (post(mallory, chat, {"content": "Hi"}, Accept=SSE), (404, "not_found")),
        (post(None, chat, {"content": "Hi"}, Accept=SSE), (401, "not_authenticated")),
    ):
        assert error_of(answer) == expected
        assert answer.headers["Content-Type"] == "application/json"
    say(chat)
    new_turn(chat)
    answer = post(alice, chat, {"content": "Hi"}, Accept=SSE)
    assert error_of(answer) == (409, "turn_in_progress")
    assert answer.headers["Content-Type"] == "application/json"


def test_a_role_that_starts_nothing_is_answered_with_json(alice, chat):
    answer = post(alice, chat, {"role": "system", "content": "Be brief."}, Accept=SSE)
    assert answer.status_code == 201
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["turn"] is None


@pytest.mark.django_db(transaction=True)
def test_a_question_is_answered_with_the_turns_events(alice, chat):
    answer = post(alice, chat, {"content": "Hi"}, Accept=SSE)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store, no-transform"
    assert answer.headers["X-Accel-Buffering"] == "no"
    cancel_turn(Turn.objects.get())
    assert [name for _, name, _ in read_sse(answer)][-1] == "turn.cancelled"


@pytest.mark.django_db(transaction=True)
def test_the_same_post_as_events_follows_the_first_turn(alice, chat):
    first = with_key(alice, chat, {"content": "Hi"}).json()
    again = with_key(alice, chat, {"content": "Hi"}, Accept=SSE)
    assert again.status_code == 200
    cancel_turn(Turn.objects.get())
    assert {data["turn_id"] for _, _, data in read_sse(again)} == {first["turn"]["id"]}
    other = with_key(alice, chat, {"content": "Ho"}, Accept=SSE)
    assert error_of(other) == (409, "idempotency_mismatch")
    assert Turn.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["edit", "regenerate"])
def test_edit_and_regenerate_stream_too(alice, chat, way):
    question, answered = converse(chat, "Hi", "Hello")
    headers = {"Accept": SSE}
    if way == "edit":
        answer = api(alice).patch(of_message(question), {"content": "Ho"}, headers=headers)
    else:
        answer = api(alice).post(of_message(answered, "regenerate/"), {}, headers=headers)
    assert answer.status_code == 200
    cancel_turn(Turn.objects.get())
    assert read_sse(answer)[-1][1] == "turn.cancelled"
    assert fields_of(api(alice).patch(of_message(question), {}, headers=headers)) == ["content"]


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_is_gone_cannot_be_followed_again(alice, chat):
    with_key(alice, chat, {"content": "Hi"})
    Turn.objects.all().delete()
    again = with_key(alice, chat, {"content": "Hi"}, Accept=SSE)
    assert error_of(again) == (404, "not_found")
