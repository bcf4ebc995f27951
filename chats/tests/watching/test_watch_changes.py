"""Test the stream of a person's changes: what tells other pages, and whom."""

import asyncio
import threading
import time
from contextlib import aclosing
from typing import Any

import orjson
import pytest
from django.db import connections

from accounts.key_services import revoke_api_key
from amber.lib import redis as amber_redis
from amber.lib.database import replica
from amber.lib.rest.drain import drain
from chats.events import change_viewers
from chats.events.changes import READY, changes_channel
from chats.models import Chat, Turn
from chats.services import cancel_turn, start_stateless_turn
from chats.tests.event_streams import READ_SECONDS
from chats.tests.rows import converse, new_assistant, new_chat, of_chat, of_message
from chats.tests.runs import ask, ask_in, run
from tests.fixtures.personas import OPERATOR, api

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/api/v1/events/"


def test_pages_of_one_loop_share_a_hub():
    """A hub that nobody uses would stay in memory: the process ends all that were made when it stops."""

    async def make() -> None:
        hub = change_viewers.change_hub()
        callbacks = len(drain._callbacks)
        assert change_viewers.change_hub() is hub
        assert len(drain._callbacks) == callbacks

    asyncio.run(make())


class Page:
    """A page that listens: the data of what it was told, in order."""

    def __init__(self, client: Any) -> None:
        self.told: list[dict[str, Any]] = []
        self.is_over = threading.Event()
        self._is_left = threading.Event()
        response = client.get(ADDRESS)
        assert response.status_code == 200
        assert response["Content-Type"].startswith("text/event-stream")
        self._thread = threading.Thread(target=self._read, args=(response,), daemon=True)
        self._thread.start()
        self.wait_for(1)

    def _read(self, response: Any) -> None:
        async def read() -> None:
            async with asyncio.timeout(READ_SECONDS), aclosing(response.streaming_content) as sent:
                async for part in sent:
                    if part.startswith(b"data: "):
                        self.told.append(orjson.loads(part.removeprefix(b"data: ")))
                    if self._is_left.is_set():
                        break
            await amber_redis.close_async_clients()

        try:
            asyncio.run(read())
            self.is_over.set()
        finally:
            connections.close_all()

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        until = time.monotonic() + 10
        while len(self.told) < count and time.monotonic() < until:
            time.sleep(0.01)
        assert len(self.told) >= count, self.told
        return self.told

    def leave(self) -> None:
        self._is_left.set()
        self._thread.join(10)


@pytest.fixture
def listening(settings):
    settings.AMBER_STREAM_HEARTBEAT_SECONDS = 0.1
    pages: list[Page] = []

    def listen(client: Any) -> Page:
        pages.append(Page(client))
        return pages[-1]

    yield listen
    for page in pages:
        page.leave()


def changed(chat_id: Any, event: str = "chat.changed", **fields: Any) -> dict[str, Any]:
    return {"event": event, "chat_id": str(chat_id), "turn_id": None, "status": None} | fields


def test_a_page_is_told_when_it_may_read_its_lists(alice, listening):
    page = listening(api(alice))
    assert page.told == [orjson.loads(READY)]


def test_every_page_of_a_person_hears_of_a_chats_life(alice, listening):
    here, there = listening(api(alice)), listening(api(alice))
    client = api(alice)
    chat = client.post("/api/v1/chats/", {"name": "Trees"}).json()["id"]
    address = f"/api/v1/chats/{chat}/"
    client.patch(address, {"name": "Resin"})
    client.post(f"{address}messages/", {"role": "system", "content": "Be short."})
    client.delete(address)
    told = [changed(chat)] * 3 + [changed(chat, "chat.deleted")]
    assert here.wait_for(5)[1:] == told
    assert there.wait_for(5)[1:] == told


def test_a_page_hears_of_branches_feedback_and_deleted_messages(alice, listening):
    chat = new_chat(alice)
    _, answer = converse(chat, "Hi", "Hello")
    page, client = listening(api(alice)), api(alice)
    client.put(of_message(answer, "feedback/"), {"value": "up"})
    client.delete(of_message(answer, "feedback/"))
    client.put(of_chat(chat, "branch/"), {"leaf_id": str(answer.pk)})
    client.delete(of_message(answer))
    assert page.wait_for(5)[1:] == [changed(chat.pk)] * 4


def test_a_page_hears_when_an_answer_begins_and_ends(alice, new_model, listening):
    new_model()
    page = listening(api(alice))
    turn = ask(alice)
    run(turn)
    told = [each for each in page.wait_for(3) if each["turn_id"]]
    begun = changed(turn.chat_id, turn_id=str(turn.pk), status="running")
    assert told == [begun, begun | {"status": "completed"}]


def test_a_page_hears_of_a_turn_that_ends_before_anybody_runs_it(alice, new_model, listening):
    new_model()
    turn = ask(alice)
    page = listening(api(alice))
    api(alice).post(f"/api/v1/turns/{turn.pk}/cancel/")
    ended = changed(turn.chat_id, turn_id=str(turn.pk), status="cancelled")
    assert page.wait_for(2)[1:] == [ended]


def test_an_import_is_told_once(alice, listening):
    page, client = listening(api(alice)), api(alice)
    said = {"messages": [{"role": "human", "content": "Hi"}]}
    assert client.post("/api/v1/chats/import/", said).status_code == 201
    told = {"event": "chats.changed", "chat_id": None, "turn_id": None, "status": None}
    assert page.wait_for(2)[1:] == [told]


def test_a_page_hears_nothing_of_others(alice, bob, mallory, listening):
    page = listening(api(bob))
    for stranger in (alice, mallory):
        api(stranger).post("/api/v1/chats/", {})
    mine = api(bob).post("/api/v1/chats/", {}).json()["id"]
    assert page.wait_for(2)[1:] == [changed(mine)]


def test_a_refused_change_is_not_told(alice, listening):
    chat = new_chat(alice)
    page, client = listening(api(alice)), api(alice)
    assert client.put(of_chat(chat, "branch/"), {"leaf_id": str(chat.pk)}).status_code == 404
    client.patch(of_chat(chat), {"name": "N"})
    assert page.wait_for(2)[1:] == [changed(chat.pk)]


def test_a_page_reads_anew_after_redis_was_lost(alice, listening):
    page = listening(api(alice))
    amber_redis.client().execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")
    assert page.wait_for(2)[1] == orjson.loads(READY)
    chat = api(alice).post("/api/v1/chats/", {}).json()["id"]
    assert page.wait_for(3)[2] == changed(chat)


def test_a_slow_page_reads_anew_instead_of_all_it_missed():
    async def fill() -> list[bytes | None]:
        viewer = change_viewers.ChangeViewer(b"channel", None)
        for _ in range(101):
            change_viewers._put(viewer, b"change")
        return [viewer.queue.get_nowait() for _ in range(viewer.queue.qsize())]

    assert asyncio.run(fill()) == [READY]


def test_the_stream_ends_with_its_key(alice, listening, monkeypatch):
    monkeypatch.setattr("chats.events.change_viewers.WELCOME_SECONDS", 0.05)
    key, secret = alice.new_key()
    page = listening(api(key=secret))
    assert not page.is_over.wait(0.3)
    revoke_api_key(key, by=OPERATOR)
    assert page.is_over.wait(10)


def test_nobody_listens_any_more_once_the_pages_are_closed(alice, listening):
    page = listening(api(alice))
    channel = changes_channel(alice.organization.pk, alice.user.pk)
    redis: Any = amber_redis.client()
    assert redis.pubsub_numsub(channel) == [(channel, 1)]
    page.leave()
    until = time.monotonic() + 10
    while redis.pubsub_numsub(channel) != [(channel, 0)] and time.monotonic() < until:
        time.sleep(0.05)
    assert redis.pubsub_numsub(channel) == [(channel, 0)]


def test_who_may_not_listen(alice, assistant):
    assert api().get(ADDRESS).status_code == 401
    _, secret = alice.new_key(assistant_id=assistant.pk)
    assert api(key=secret).get(ADDRESS).status_code == 403
    assert api(alice).post(ADDRESS, {}).status_code == 405


@pytest.mark.parametrize("kind", ["chat", "guest of a key", "no chat"])
def test_whoever_asked_reads_from_the_primary_once_the_turn_has_ended(
    alice, new_model, monkeypatch, kind
):
    """Without a chat, and for a guest of their key, nothing is told; but their usage would lack the call."""
    monkeypatch.setattr(replica, "_is_configured", lambda: True)
    new_model(default=True)
    assistant = new_assistant(alice)
    reader = alice.principal.tenant
    for end in (run, cancel_turn):
        if kind == "no chat":
            said = [{"role": "human", "content": "Hi"}]
            turn = start_stateless_turn(alice.principal, messages=said, assistant=assistant)
        else:
            chat = new_chat(alice, assistant=assistant)
            turn = ask_in(chat, alice)
            if kind == "guest of a key":
                guest = {"guest_id": f"{alice.user.pk}:Ann"}
                Turn.objects.filter(pk=turn.pk).update(**guest)
                Chat.objects.filter(pk=chat.pk).update(**guest)
        amber_redis.client().delete(replica._written_key(reader))
        end(turn)
        assert replica._wrote_lately(reader)
