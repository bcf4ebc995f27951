import pytest

from chats.models import Chat, ChatMessage, Turn
from chats.tests.rows import ABSENT, error_of, fields_of, new_assistant, of_turn
from tests.fixtures.personas import api


def address(assistant):
    return f"/api/v1/assistants/{assistant.pk}/try/"


def test_starts_a_turn_without_a_chat(
    alice, assistant, enqueued_turns, django_capture_on_commit_callbacks
):
    history = [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes?"}]
    with django_capture_on_commit_callbacks(execute=True):
        answer = api(alice).post(address(assistant), {"content": "Hi", "history": history})
    assert answer.status_code == 201
    assert (answer.json()["status"], answer.json()["chat_id"]) == ("queued", None)
    turn = Turn.objects.get()
    assert turn.input == {"messages": [*history, {"role": "human", "content": "Hi"}]}
    assert (turn.assistant, turn.user, turn.organization) == (
        assistant,
        alice.user,
        alice.organization,
    )
    assert enqueued_turns == [turn.pk]
    assert not Chat.objects.exists()
    assert not ChatMessage.objects.exists()
    assert api(alice).get(of_turn(turn)).json()["id"] == str(turn.pk)


def test_several_may_be_tried_at_once(alice, assistant):
    for _ in range(2):
        assert api(alice).post(address(assistant), {"content": "Hi"}).status_code == 201
    assert Turn.objects.count() == 2


def test_the_same_post_twice_starts_one_turn(alice, assistant):
    headers = {"Idempotency-Key": "k-1"}
    first, again = (
        api(alice).post(address(assistant), {"content": "Hi"}, headers=headers) for _ in range(2)
    )
    assert (again.status_code, again.json()) == (201, first.json())
    other = api(alice).post(address(assistant), {"content": "Ho"}, headers=headers)
    assert error_of(other) == (409, "idempotency_mismatch")
    assert Turn.objects.count() == 1


def test_who_sees_the_assistant_may_try_it(alice, bob, mallory, assistant):
    assert api(bob).post(address(assistant), {"content": "Hi"}).status_code == 404
    assert api(mallory).post(address(assistant), {"content": "Hi"}).status_code == 404
    shared = new_assistant(alice, shared=True)
    assert api(bob).post(address(shared), {"content": "Hi"}).status_code == 201
    assert api(mallory).post(address(shared), {"content": "Hi"}).status_code == 404
    assert api().post(address(shared), {"content": "Hi"}).status_code == 401
    turn = Turn.objects.get()
    assert turn.user == bob.user
    assert api(alice).get(of_turn(turn)).status_code == 404


def test_an_absent_assistant_is_404(alice):
    answer = api(alice).post(f"/api/v1/assistants/{ABSENT}/try/", {"content": "Hi"})
    assert error_of(answer) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "x" * 200_001}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"content": "Hi", "history": "x"}, "history"),
        ({"content": "Hi", "history": [{"role": "tool", "content": "x"}]}, "history.0.role"),
        ({"content": "Hi", "history": [{"role": "human"}]}, "history.0.content"),
        ({"content": "Hi", "history": [{"role": "human", "content": "x"}] * 201}, "history"),
    ],
)
def test_a_bad_body_names_the_field(alice, assistant, body, field):
    assert fields_of(api(alice).post(address(assistant), body)) == [field]
    assert not Turn.objects.exists()
