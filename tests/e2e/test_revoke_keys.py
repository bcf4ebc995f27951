"""A key that is revoked, or a session that is signed out, while its answers stream: the streams end, what
nobody gets is not asked on."""

import threading
import time
from typing import Any

import pytest

from amber.processes import wait_until
from tests.e2e.kit.client import Answer, Client, Connection
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import SESSION, new_account, send, signed_in

pytestmark = pytest.mark.e2e

PROMISED_SECONDS = 15.0
SLOW = "Tell me. [[fake tokens=1200 itl=40]]"


@pytest.fixture
def eve(platform: Platform) -> Client:
    """Somebody who is about to lose her key."""
    return platform.new_person(f"eve-{time.monotonic_ns()}", "Acme")


def revoke(platform: Platform, client: Client) -> None:
    sql = "UPDATE accounts_apikey SET revoked_at = now() WHERE prefix = %s RETURNING id"
    assert len(platform.query(sql, client.key[:13])) == 1


def test_its_streams_end_and_its_chats_turns_go_on(platform, eve):
    asked = eve.ask(SLOW)
    headers = {"Accept": "text/event-stream"}
    with Connection(eve, "GET", f"turns/{asked.turn_id}/events/", None, headers) as connection:
        events = connection.events()
        seen = [next(events) for _ in range(5)]
        revoke(platform, eve)
        revoked_at = time.monotonic()
        seen += list(events)
    assert time.monotonic() - revoked_at < PROMISED_SECONDS
    assert not any(event is not None and event.is_last for event in seen)
    again = eve.get(f"turns/{asked.turn_id}/events/")
    assert (again.status, again.error["code"]) == (401, "invalid_credential")
    [(status,)] = platform.query("SELECT status FROM chats_turn WHERE id = %s", asked.turn_id)
    assert status == "running", "the chat is the user's, and keeps its answer"
    platform.query("UPDATE chats_turn SET cancel_requested_at = now() RETURNING id")


def test_a_deactivated_users_streams_end_too(platform, eve):
    asked = eve.ask(SLOW)
    headers = {"Accept": "text/event-stream"}
    with Connection(eve, "GET", f"turns/{asked.turn_id}/events/", None, headers) as connection:
        events = connection.events()
        seen = [next(events) for _ in range(5)]
        sql = "UPDATE accounts_user SET is_active = false WHERE email LIKE 'eve-%%' RETURNING id"
        assert platform.query(sql)
        seen += list(events)
    assert not any(event is not None and event.is_last for event in seen)
    platform.query("UPDATE chats_turn SET cancel_requested_at = now() RETURNING id")


def test_a_signed_out_sessions_streams_end_too(platform):
    with signed_in(platform, new_account(platform, "eve")) as http:
        assistant = send(http, "POST", "/api/v1/assistants/", {"name": "A", "model": "fake-model"})
        chat = send(http, "POST", "/api/v1/chats/", {"assistant_id": assistant["id"]})
        path = f"/api/v1/chats/{chat['id']}/messages/"
        turn_id = send(http, "POST", path, {"content": SLOW})["turn"]["id"]
        events = f"/api/v1/turns/{turn_id}/events/"
        with http.stream("GET", events, timeout=PROMISED_SECONDS) as streamed:
            lines = streamed.iter_lines()
            assert next(lines).startswith("id: ")
            token = {"X-CSRFToken": http.cookies["csrftoken"]}
            assert http.delete(SESSION, headers=token).status_code == 401
            signed_out_at = time.monotonic()
            rest = list(lines)
        assert time.monotonic() - signed_out_at < PROMISED_SECONDS
        assert "event: turn.completed" not in rest
    platform.query("UPDATE chats_turn SET cancel_requested_at = now() RETURNING id")


def test_what_no_chat_keeps_is_not_asked_on(platform, eve, fake_provider):
    """`/chat` waits for the whole answer: it gets the refusal, and the provider is hung up on."""
    aborted = fake_provider.stats()["aborted"]
    answers: list[Answer] = []
    body: dict[str, Any] = {"messages": [{"role": "user", "content": SLOW}], "model": "fake-model"}
    asking = threading.Thread(target=lambda: answers.append(eve.post("/chat", body)))
    asking.start()
    running = "SELECT 1 FROM chats_turn WHERE chat_id IS NULL AND status = 'running'"
    platform.wait_for(lambda: platform.query(running), "turn that runs")
    revoke(platform, eve)
    asking.join(PROMISED_SECONDS)
    assert [(answer.status, answer.error["code"]) for answer in answers] in (
        [(401, "invalid_credential")],
        [(409, "conflict")],  # the worker was faster: the turn is cancelled
    )
    assert wait_until(
        lambda: fake_provider.stats()["aborted"] > aborted, timeout_seconds=PROMISED_SECONDS
    )
