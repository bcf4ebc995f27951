"""Webhooks to an address that a test listens at, and ended turns to tell of."""

import pytest

from amber.lib.tests.local_server import LocalServer
from chats.services import start_stateless_turn
from chats.tests.runs import run
from public_api.webhooks import outbox
from public_api.webhooks.services import create_webhook

SIX = "[[fake tokens=6]]"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def enqueued(monkeypatch, settings):
    """How often a message was enqueued; and they know at once who has webhooks."""
    heard = []
    monkeypatch.setattr(outbox, "KNOWN_SECONDS", -1.0)
    monkeypatch.setattr("public_api.webhooks.outbox.enqueue_deliveries", lambda: heard.append(1))
    monkeypatch.setattr("public_api.webhooks.services.enqueue_deliveries", lambda: heard.append(1))
    monkeypatch.setattr("chats.turns.admission.enqueue_turn", lambda pk: None)
    monkeypatch.setattr("chats.services.announce_cancel", lambda pk: None)
    yield heard
    outbox.forget_known()


@pytest.fixture
def receiver(settings):
    with LocalServer() as server:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
        answer_with(server, OK)
        yield server


def answer_with(server, raw):
    server.routes["/hook"] = lambda connection, _: connection.sendall(raw)


@pytest.fixture
def hook(receiver):
    def make(persona, **fields):
        events = fields.pop("events", ["turn.completed", "turn.failed", "turn.cancelled"])
        url = f"http://127.0.0.1:{receiver.port}/hook"
        return create_webhook(persona.principal, fields={"url": url, "events": events} | fields)

    return make


def with_key(persona):
    """The principal of a key of theirs."""
    principal = persona.principal
    return type(principal)(
        principal.organization_id, principal.user, principal.role, key=persona.new_key()[0]
    )


def turn_of(persona, content=SIX, *, by_key=True):
    principal = with_key(persona) if by_key else persona.principal
    turn = start_stateless_turn(principal, messages=[{"role": "human", "content": content}])
    run(turn)
    return turn
