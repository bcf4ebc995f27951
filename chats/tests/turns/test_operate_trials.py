"""Test the conversation by which operators try an assistant of any organization."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from chats import services
from chats.models import Chat, Turn
from engine.events import TurnStatus

HISTORY = [{"role": "human", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]

pytestmark = pytest.mark.django_db(transaction=True)


def place(name, assistant, *more):
    return reverse(f"admin:chats_try_{name}", args=[assistant.pk, *more])


def post(client, assistant, **body):
    return client.post(place("assistant", assistant), body)


def test_a_question_takes_along_what_was_said(operator, assistant, enqueued_turns):
    answer = post(operator, assistant, content="And now?", history=json.dumps(HISTORY))
    assert answer["Content-Type"].startswith("text/event-stream")
    turn = Turn.objects.get()
    assert turn.input == {"messages": [*HISTORY, {"role": "human", "content": "And now?"}]}
    assert turn.organization_id == assistant.organization_id
    assert turn.user is not None
    assert turn.user.email == "operator@example.com"
    assert enqueued_turns == [turn.pk]
    assert not Chat.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": " "}, "content"),
        ({"content": "Hi", "history": "{"}, "history"),
        ({"content": "Hi", "history": '[{"role": "tool", "content": "x"}]'}, "history"),
    ],
)
def test_a_refusal_names_the_field(operator, assistant, body, field):
    answer = post(operator, assistant, **body)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not Turn.objects.exists()


def test_the_page_has_the_conversation(operator, assistant):
    page = operator.get(place("assistant", assistant)).content.decode()
    assert f'data-ask="{place("assistant", assistant)}"' in page
    assert "<script>" not in page


def test_its_pictures_and_its_stop_are_the_operators_own(operator, alice, assistant):
    post(operator, assistant, content="Hi")
    turn = Turn.objects.get()
    assert "Nothing is recorded" in (
        operator.get(place("turn", assistant, turn.pk)).content.decode()
    )
    assert operator.get(place("stop", assistant, turn.pk)).status_code == 405
    assert operator.post(place("stop", assistant, turn.pk)).status_code == 204
    turn.refresh_from_db()
    assert turn.status == TurnStatus.CANCELLED
    stream = operator.get(place("events", assistant, turn.pk))
    assert stream["Content-Type"].startswith("text/event-stream")
    asked = [{"role": "human", "content": "Hi"}]
    hers = services.start_stateless_turn(alice.principal, assistant=assistant, messages=asked)
    for name in ("turn", "events"):
        assert operator.get(place(name, assistant, hers.pk)).status_code == 404
    assert operator.post(place("stop", assistant, hers.pk)).status_code == 404
    hers.refresh_from_db()
    assert hers.status == TurnStatus.QUEUED


def test_staff_without_the_right_try_nothing(alice, assistant):
    client = Client()
    client.force_login(User.objects.create_user("staff@example.com", is_staff=True))
    assert client.get(place("assistant", assistant)).status_code == 403
    assert post(client, assistant, content="Hi").status_code == 403
    client.force_login(alice.user)
    assert client.get(place("assistant", assistant)).status_code == 302
    assert not Turn.objects.exists()
