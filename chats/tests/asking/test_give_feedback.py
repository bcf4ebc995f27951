"""Test thumbs: who gives them on what, who reads and counts them, and how they go."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from chats.models import Chat, Feedback
from chats.services import delete_chat
from chats.tests.rows import (
    ABSENT,
    fields_of,
    messages,
    new_assistant,
    new_chat,
    of_chat,
    of_message,
    say,
)
from tests.fixtures.personas import api

ALL = "/api/v1/feedback/"
TOTALS = f"{ALL}totals/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def answer(bob, assistant):
    chat = new_chat(bob, assistant=assistant)
    say(chat, "Hi")
    return say(chat, "Hello", role="assistant", assistant=assistant)


def give(persona, message, value="up", **fields):
    return api(persona).put(of_message(message, "feedback/"), {"value": value, **fields})


def shown(persona, message):
    return api(persona).get(of_message(message)).json()["feedback"]


def listed(persona, address=ALL, **filters):
    answered = api(persona).get(address, filters)
    assert answered.status_code == 200, answered.json()
    return answered.json()["results"]


# -- Giving ----------------------------------------------------------------------------------------


def test_a_thumb_is_kept_and_shown_with_its_message(bob, answer):
    answered = give(bob, answer, "down", reason="wrong", comment="It is 54 °C.")
    assert answered.status_code == 200
    kept = answered.json()
    assert (kept["value"], kept["reason"], kept["comment"]) == ("down", "wrong", "It is 54 °C.")
    assert shown(bob, answer) == kept
    question, last = api(bob).get(messages(answer.chat)).json()["results"]
    assert (question["feedback"], last["feedback"]) == (None, kept)
    exported = api(bob).get(of_chat(answer.chat, "export/")).json()
    assert [each["feedback"] for each in exported["messages"]] == [None, kept]


def test_a_second_thumb_replaces_the_first(bob, answer):
    give(bob, answer, "down", reason="wrong", comment="No.")
    given = give(bob, answer).json()
    assert (given["value"], given["reason"], given["comment"]) == ("up", None, "")
    assert Feedback.objects.count() == 1


def test_a_thumb_is_taken_back(bob, answer):
    give(bob, answer)
    for _ in range(2):
        assert api(bob).delete(of_message(answer, "feedback/")).status_code == 204
    assert shown(bob, answer) is None
    assert not Feedback.objects.exists()


def test_the_database_keeps_one_for_each_user_and_message(bob, answer):
    given = {"organization": bob.organization, "chat": answer.chat, "message": answer}
    for user in (bob.user, None):
        Feedback.objects.create(**given, user=user, value="up")
        with pytest.raises(IntegrityError), transaction.atomic():
            Feedback.objects.create(**given, user=user, value="down")


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({}, "value"),
        ({"value": "sideways"}, "value"),
        ({"value": "up", "reason": "wrong"}, "reason"),
        ({"value": "down", "reason": "clear"}, "reason"),
        ({"value": "down", "reason": "ugly"}, "reason"),
        ({"value": "up", "comment": "x" * 2_001}, "comment"),
    ],
)
def test_what_is_no_feedback_is_refused(bob, answer, said, field):
    answered = api(bob).put(of_message(answer, "feedback/"), said)
    assert fields_of(answered) == [field]
    assert not Feedback.objects.exists()


def test_only_answers_are_judged(bob, answer):
    assert give(bob, answer.parent).status_code == 400


@pytest.mark.parametrize("persona", ["alice", "mallory"])
def test_nobody_else_judges_an_answer(request, answer, persona):
    """Not even the organization's owner: it is not theirs."""
    stranger = request.getfixturevalue(persona)
    assert give(stranger, answer).status_code == 404
    assert api(stranger).delete(of_message(answer, "feedback/")).status_code == 404


def test_an_absent_message_and_nobody(bob):
    path = f"/api/v1/messages/{ABSENT}/feedback/"
    assert api(bob).put(path, {"value": "up"}).status_code == 404
    assert api().put(path, {"value": "up"}).status_code == 401


def test_a_guest_of_a_key_judges_as_a_guest(alice, answer):
    chat = Chat.objects.create(
        organization=alice.organization, user=alice.user, guest_id=f"{alice.user.pk}:ann"
    )
    told = say(chat, "Hello", role="assistant")
    assert give(alice, told).status_code == 404


# -- Reading ---------------------------------------------------------------------------------------


def test_admins_list_what_was_given_without_the_answer(alice, carol, bob, answer, assistant):
    give(bob, answer, "down", reason="sources", comment="Where from?")
    for admin in (alice, carol):
        (found,) = listed(admin)
        assert found | {"created_at": 0, "updated_at": 0} == {
            "id": str(Feedback.objects.get().pk),
            "message_id": str(answer.pk),
            "chat_id": str(answer.chat_id),
            "assistant": {"id": str(assistant.pk), "name": assistant.name},
            "user_id": str(bob.user.pk),
            "value": "down",
            "reason": "sources",
            "comment": "Where from?",
            "created_at": 0,
            "updated_at": 0,
        }
        assert api(admin).get(of_message(answer)).status_code == 404


@pytest.mark.parametrize("address", [ALL, TOTALS])
def test_others_do_not_list_it(alice, bob, mallory, answer, address):
    give(bob, answer)
    assert api(bob).get(address).status_code == 403
    assert api().get(address).status_code == 401
    _, secret = alice.new_key()
    assert api(key=secret).get(address).status_code == 403
    assert listed(mallory, address) == []


def test_the_list_is_filtered(alice, bob, answer, assistant):
    other = say(answer.chat, "So", role="assistant", assistant=new_assistant(alice))
    give(bob, answer, "down", reason="wrong")
    give(bob, other)
    Feedback.objects.filter(message=other).update(created_at=datetime(2026, 1, 31, 23, tzinfo=UTC))

    def found(**filters):
        return [each["message_id"] for each in listed(alice, **filters)]

    wrong, right = str(answer.pk), str(other.pk)
    assert found() == [wrong, right]
    assert found(value="down") == found(reason="wrong") == [wrong]
    assert found(assistant_id=str(assistant.pk)) == found(**{"from": "2026-02-01"}) == [wrong]
    assert found(to="2026-01-31") == found(**{"from": "2026-01-31", "to": "2026-01-31"}) == [right]
    assert found(to="2026-01-30") == found(user_id=str(alice.user.pk)) == []
    for wrong_filter in ({"value": "x"}, {"from": "today"}, {"assistant_id": "x"}):
        assert api(alice).get(ALL, wrong_filter).status_code == 400


def test_thumbs_are_counted_by_assistant_and_day(alice, bob, answer, assistant):
    again = say(answer.chat, "So", role="assistant", assistant=assistant)
    plain = say(answer.chat, "Hm", role="assistant")
    give(bob, answer)
    give(bob, again, "down")
    give(bob, plain, "down")
    earlier = datetime.now(UTC) - timedelta(days=3)
    Feedback.objects.filter(message=again).update(created_at=earlier)
    named = {"id": str(assistant.pk), "name": assistant.name}
    today = datetime.now(UTC).date().isoformat()
    assert listed(alice, TOTALS) == [
        {"day": today, "assistant": named, "up": 1, "down": 0},
        {"day": today, "assistant": None, "up": 0, "down": 1},
        {"day": earlier.date().isoformat(), "assistant": named, "up": 0, "down": 1},
    ]
    assert len(listed(alice, TOTALS, assistant_id=str(assistant.pk))) == 2
    assert len(listed(alice, TOTALS, **{"from": today})) == 2
    assert api(alice).get(TOTALS, {"from": "2020-01-01"}).status_code == 400


# -- Going -----------------------------------------------------------------------------------------


def test_feedback_goes_with_its_message(bob, answer):
    give(bob, answer)
    assert api(bob).delete(of_message(answer)).status_code == 204
    assert not Feedback.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_feedback_goes_with_its_chat(bob, answer):
    give(bob, answer)
    delete_chat(answer.chat)
    assert not Feedback.objects.exists()


def test_it_outlives_its_assistant(alice, bob, answer, assistant):
    give(bob, answer)
    assistant.delete()
    (found,) = listed(alice)
    assert found["assistant"] is None


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_the_last_day_that_there_are_bound_it(alice, bob, answer, day):
    give(bob, answer)
    found = [listed(alice, ALL, to=day), listed(alice, TOTALS, to=day, **{"from": day})]
    assert [len(each) for each in found] == ([0, 0] if day == "0001-01-01" else [1, 0])
    assert listed(alice, TOTALS, to="0001-01-01") == []
