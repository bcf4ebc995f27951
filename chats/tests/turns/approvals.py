"""A tool that asks first, turns that wait for an answer to it, and the answers."""

from typing import Annotated, Any

import pytest

from amber.lib.database.lease import Fenced
from chats.models import ChatMessage, Turn
from chats.tests.rows import of_turn
from chats.tests.runs import ask
from providers.models import OFFLINE_URL, LanguageModel, Provider
from tests.fixtures.personas import api
from tools.calling.registry import register_tool


@pytest.fixture
def sent(monkeypatch):
    """Register a tool that asks first, and one that does not; return what the first one did."""
    monkeypatch.setattr("tools.calling.registry._tools", {})
    done: list[str] = []

    @register_tool
    def look(place: Annotated[str, "Where"]) -> str:
        """Looks."""
        return f"Rain in {place}."

    @register_tool(asks_first=True)
    def send(to: Annotated[str, "Whom"]) -> str:
        """Sends."""
        done.append(to)
        return f"Sent to {to}."

    return done


@pytest.fixture
def offline(db):
    """The model that makes the calls it is told to."""
    builtin = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    return LanguageModel.objects.create(provider=builtin, alias="offline", upstream_id="offline")


@pytest.fixture
def asked(alice, offline, sent):
    return lambda content: ask(alice, "offline", content=content)


def calls_of(turn: Turn) -> list[str]:
    turn.refresh_from_db()
    return [entry["call_id"] for entry in turn.waiting_calls]


def decide(persona: Any, turn: Turn, decisions: Any, **headers: str) -> Any:
    body = {"decisions": decisions}
    return api(persona).post(of_turn(turn, "approve/"), body, headers=headers)


def decide_all(persona: Any, turn: Turn, approved: bool) -> Any:
    return decide(persona, turn, dict.fromkeys(calls_of(turn), approved))


def results_of(turn: Turn) -> list[str]:
    rows = ChatMessage.objects.filter(turn=turn, role="tool").order_by("position")
    return list(rows.values_list("content", flat=True))


def die(*_: object) -> None:
    """Stand in for a write: the worker is gone before it."""
    raise Fenced
