"""Run turns in this process, against the fake provider and the tests' Redis."""

import asyncio
import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.db import connections
from pydantic import TypeAdapter

from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.workers.leases import StopReason
from chats import services
from chats.context import gathering
from chats.context.question_embedding import embed_question
from chats.messages.turn_messages import messages_of_turn
from chats.models import Chat, Turn
from chats.running import runner
from chats.running.stopping import running_turns
from chats.running.writer import TurnWriter
from chats.tests.event_streams import stream_of
from chats.tests.rows import expire, new_assistant, new_chat, take_over
from chats.turns.sweep import sweep_turns
from engine.events import AnyEvent, Event, Transcript, TurnStatus, fold
from engine.history.prompt import untrusted_prompt
from tests.fixtures.personas import Persona

WAIT_SECONDS = 30
_PIECES = ("text.delta", "reasoning.delta")
_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[AnyEvent])


def ask(persona: Persona, model: str = "fake-model", content: str = "Hi", **fields: Any) -> Any:
    """Make a chat with a new assistant of this model, and the turn of its first question."""
    chat = new_chat(persona, assistant=new_assistant(persona, model=model, **fields))
    return ask_in(chat, persona, content)


def ask_in(chat: Chat, persona: Persona, content: str = "Hi", **fields: Any) -> Any:
    posted = services.post_message(
        chat.pk, persona.principal, role="human", content=content, **fields
    )
    assert posted.turn is not None
    return posted.turn


def marker(name: str, arguments: dict[str, Any], tokens: int = 6) -> str:
    """Return a question that makes the fake provider call this tool."""
    encoded = base64.urlsafe_b64encode(json.dumps(arguments).encode()).decode().rstrip("=")
    return f"[[fake call={name} args={encoded} tokens={tokens}]]"


def run_named(turn_id: Any, *, worker: str = "w1") -> TurnStatus | None:
    """Claim just this turn, whichever is next, and run it; None if it was not queued."""
    with runner.ENTRY.place() as place:
        with across_tenants():
            found = Turn.objects.filter(pk=turn_id).values_list(*Turn.TENANT_FIELDS).first()
            if not Turn.objects.take([turn_id], worker, settings.AMBER_LEASE_SECONDS):
                return None
        assert found is not None
        return runner.run_claimed(turn_id, found, place)


def run(turn: Turn, worker: str = "w1") -> TurnStatus | None:
    """Run the turn to its end, here and now; `turn` is read again."""
    status = run_named(turn.pk, worker=worker)
    if Turn.objects.filter(pk=turn.pk).exists():
        turn.refresh_from_db()
    return status


def die_the_second_time(turn: Turn, monkeypatch: Any, method: str) -> None:
    """Run the turn until its worker dies as it stores by this method for the second time, and queue
    the turn again."""
    store = getattr(TurnWriter, method)
    seen: list[int] = []

    def die(writer: TurnWriter, *args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        if len(seen) == 2:
            take_over(turn)
            expire(turn)
        return store(writer, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, method, die)
        assert run(turn) is None
    assert sweep_turns() == [turn.pk]


@dataclass
class Run:
    """A run in a thread of its own."""

    turn: Turn
    status: list[TurnStatus | None] = field(default_factory=list)

    def wait_for(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.01)

    def wait_for_text(self) -> None:
        self.wait_for(lambda: text_of(self.turn))

    def stop(self, reason: StopReason) -> None:
        running_turns.stop(self.turn.pk, reason)


@contextmanager
def running(turn: Turn, worker: str = "w1") -> Iterator[Run]:
    """Run the turn beside the test, until the block has ended; `turn` is read again afterwards."""
    this = Run(turn)

    def work() -> None:
        try:
            this.status.append(run_named(turn.pk, worker=worker))
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield this
    except BaseException:
        running_turns.stop(turn.pk, StopReason.FENCED)
        raise
    finally:
        thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    if Turn.objects.filter(pk=turn.pk).exists():
        turn.refresh_from_db()


def names_of(turn: Turn) -> list[str]:
    """Return the names of the events in the turn's stream, runs of text or reasoning as one."""
    names: list[str] = []
    for event in stream_of(turn):
        if event["event"] not in _PIECES or names[-1:] != [event["event"]]:
            names.append(event["event"])
    return names


def text_of(turn: Turn) -> str:
    return "".join(e["text"] for e in stream_of(turn) if e["event"] == "text.delta")


def seen_of(turn: Turn) -> Transcript:
    """Return what a viewer knows who saw everything."""
    return fold(_EVENTS.validate_python(stream_of(turn)))


def assert_stored_is_what_was_streamed(turn: Turn) -> None:
    """Check that the fold of the events is what is stored, and that their numbers have no holes
    within an attempt (docs/stream-protocol.md).
    """
    turn.refresh_from_db()
    seen, events = seen_of(turn), stream_of(turn)
    assert seen.messages == messages_of_turn(turn)
    assert (seen.text, seen.reasoning) == ({}, {})
    assert seen.ended == f"turn.{turn.status}"
    numbers = [event["seq"] for event in events]
    assert numbers[-1] == turn.seq
    for before, after in pairwise(numbers):
        assert after == before + 1 or (after % 1_000_000 == 1 and after > before)


def unmarked(messages: Any) -> Any:
    """Return a request's messages without the marks around what strangers wrote, and without the
    sentence about them."""
    if isinstance(messages, list):
        plain = [unmarked(each) for each in messages]
        return [each for each in plain if each != {"role": "system", "content": ""}]
    if isinstance(messages, dict):
        return {name: unmarked(value) for name, value in messages.items()}
    if not isinstance(messages, str):
        return messages
    for mark in set(re.findall(r"<data-([0-9a-f]+)>", messages)):
        about = untrusted_prompt(mark)
        for part in (f"\n{about}", about, f"<data-{mark}>\n", f"\n</data-{mark}>"):
            messages = messages.replace(part, "")
    return messages


def prepared_for(turn: Turn) -> gathering.PreparedRequest:
    """Return the turn's next request, as its runner would compose it."""
    with as_tenant(Tenant(turn.organization_id, turn.user_id, turn.guest_id)):
        gathered = gathering.gather(turn)
        layout = gathering.lay_out(turn, gathered)
        embedded = asyncio.run(embed_question(gathered.wanted))
        return gathering.prepare(turn, gathered, layout, embedded)
