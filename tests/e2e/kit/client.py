"""A JSON client, and a viewer of event streams that behaves as a browser's EventSource does.

A viewer reconnects with Last-Event-ID until it has seen a turn's last event; a frame cut in the
middle is thrown away, as https://html.spec.whatwg.org/multipage/server-sent-events.html wants.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import TypeAdapter

from engine.events import AnyEvent, Event, TextDelta, TurnRestarted

PATIENCE_SECONDS = 40.0
RECONNECT_SECONDS = 0.2
_EVENTS: TypeAdapter[Event] = TypeAdapter(AnyEvent)

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Headers
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body["error"]
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the turn that answers it."""

    chat_id: str
    message_id: str
    turn_id: str


class Client:
    """Speaks JSON as the owner of a key. Paths start at the root or, without a /, at /api/v1/."""

    def __init__(self, port: int, key: str = "") -> None:
        self.port = port
        self.key = key
        self._assistants: dict[str, str] = {}

    def at(self, port: int) -> "Client":
        """The same person at another web process."""
        return Client(port, self.key)

    def get(self, path: str, **options: Any) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.request("POST", path, body, **options)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Headers | None = None,
        is_checked: bool = True,
    ) -> Answer:
        """Fails for 5xx, and for no answer, unless told not to look (status 0: no answer)."""
        try:
            with Connection(self, method, path, body, headers or {}) as connection:
                response = connection.response
                text = response.read()
                answer = Answer(response.status, dict(response.headers), _parsed(text))
        except OSError:
            if is_checked:
                raise
            return Answer(0, {}, None)
        assert not is_checked or answer.status < 500, answer
        return answer

    # -- What the tests do all the time --------------------------------------------------------

    def assistant(self, model: str) -> str:
        """The id of an assistant with this model."""
        if model not in self._assistants:
            made = self.post("assistants/", {"name": f"With {model}", "model": model})
            assert made.status == 201, made
            self._assistants[model] = made.body["id"]
        return self._assistants[model]

    def new_chat(self, model: str = "fake-model") -> str:
        made = self.post("chats/", {"assistant_id": self.assistant(model)})
        assert made.status == 201, made
        return str(made.body["id"])

    def ask(self, text: str = "Tell me.", *, model: str = "fake-model", chat_id: str = "") -> Asked:
        chat_id = chat_id or self.new_chat(model)
        posted = self.post(f"chats/{chat_id}/messages/", {"content": text})
        assert posted.status == 201, posted
        return Asked(chat_id, posted.body["message"]["id"], posted.body["turn"]["id"])

    def turn(self, turn_id: str) -> dict[str, Any]:
        answer = self.get(f"turns/{turn_id}/")
        assert answer.status == 200, answer
        return dict(answer.body)

    def ended(self, turn_id: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The turn once it is over."""
        deadline = time.monotonic() + seconds
        while (turn := self.turn(turn_id))["ended_at"] is None:
            assert time.monotonic() < deadline, turn
            time.sleep(0.1)
        return turn

    def messages(self, chat_id: str, *, all_branches: bool = False) -> list[dict[str, Any]]:
        """The active branch, or all, oldest first."""
        branches = "&branches=all" if all_branches else ""
        answer = self.get(f"chats/{chat_id}/messages/?limit=200{branches}")
        assert answer.status == 200, answer
        return list(answer.body["results"])

    def written(self, asked: Asked) -> list[dict[str, Any]]:
        """What the turn wrote, in all branches."""
        all_ = self.messages(asked.chat_id, all_branches=True)
        mine = [m for m in all_ if m["turn_id"] == asked.turn_id and m["id"] != asked.message_id]
        return sorted(mine, key=lambda m: len(_ancestors(m, all_)))

    def watch(self, asked: Asked | str, **options: Any) -> "Viewer":
        turn_id = asked if isinstance(asked, str) else asked.turn_id
        return Viewer(self, "GET", f"turns/{turn_id}/events/", **options)


def _ancestors(message: dict[str, Any], among: list[dict[str, Any]]) -> list[str]:
    parents = {m["id"]: m["parent_id"] for m in among}
    found: list[str] = []
    here = message["parent_id"]
    while here:
        found.append(here)
        here = parents.get(here)
    return found


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text.decode(errors="replace")


class Connection:
    """One request and its answer, closed with the block."""

    def __init__(self, client: Client, method: str, path: str, body: Any, headers: Headers) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE_SECONDS)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if raw is not None else {}
        if client.key:
            sent["Authorization"] = f"Bearer {client.key}"
        where = path if path.startswith("/") else f"/api/v1/{path}"
        try:
            self._http.request(method, where, raw, {**sent, **headers})
            self.response = self._http.getresponse()
        except http.client.HTTPException as exc:
            self._http.close()
            raise ConnectionError(str(exc)) from exc
        except OSError:
            self._http.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.response.close()
        self._http.close()

    def events(self) -> Iterator[Event | None]:
        """Events until the connection ends, None for a comment. Raises ConnectionError, OSError."""
        fields: dict[str, str] = {}
        try:
            while line := self.response.readline():
                text = line.decode().rstrip("\n")
                if text.startswith(":"):
                    yield None
                elif text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif fields and "id" not in fields:
                    # Its place in the queue comes or not, as busy as the machine is; it is no part of a stream.
                    assert _EVENTS.validate_json(fields["data"]).event == "queue.position"
                    fields = {}
                elif fields:
                    yield _event(fields)
                    fields = {}
        except (http.client.HTTPException, ValueError, AttributeError) as exc:
            raise ConnectionError(str(exc)) from exc  # AttributeError: closed by another thread


def _event(fields: dict[str, str]) -> Event:
    event = _EVENTS.validate_json(fields["data"])
    assert fields == {"id": str(event.seq), "event": event.event, "data": fields["data"]}
    return event


@dataclass
class Viewer:
    """Watches one turn in a thread of its own, from the start or from after an event.

    `path` answers to GET, or to a POST whose stream is then resumed at the turn's address.
    """

    client: Client
    method: str
    path: str
    body: Any = None
    last_event_id: str = ""
    headers: Headers = field(default_factory=dict)
    drop_after: int | None = None
    """Closes the connection after so many events, once."""

    def __post_init__(self) -> None:
        self.events: list[Any] = []
        self.comments = 0
        self.connections = 0
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._deadline = time.monotonic() + 4 * PATIENCE_SECONDS
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    # -- What tests ask ----------------------------------------------------------------------------

    def wait_for(
        self, check: Callable[["Viewer"], bool], seconds: float = PATIENCE_SECONDS
    ) -> Self:
        with self._changed:
            found = self._changed.wait_for(lambda: self._failure or check(self), seconds)
        if self._failure:
            raise self._failure
        assert found, f"not seen within {seconds} s: {self.names[-20:]}"
        return self

    def wait_for_text(self, chars: int = 1) -> Self:
        return self.wait_for(lambda viewer: len(viewer.text) >= chars)

    def wait_for_event(self, name: str) -> Self:
        return self.wait_for(lambda viewer: name in viewer.names)

    def to_the_end(self, seconds: float = PATIENCE_SECONDS) -> list[Any]:
        """All events, the turn's last one included."""
        self.wait_for(lambda viewer: viewer.is_over, seconds)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the stream did not end after the last event"
        if self._failure:
            raise self._failure
        return self.events

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1].is_last

    @property
    def names(self) -> list[str]:
        return [event.event for event in self.events]

    @property
    def text(self) -> str:
        """The deltas of the last step that spoke, restarts taken back."""
        pieces: list[TextDelta] = []
        for event in list(self.events):
            if isinstance(event, TextDelta):
                pieces.append(event)
            elif isinstance(event, TurnRestarted):
                pieces = [p for p in pieces if p.step < event.step]
        return "".join(p.text for p in pieces if p.step == pieces[-1].step)

    def asked(self, chat_id: str) -> Asked:
        """The question that this viewer posted."""
        started = self.events[0]
        return Asked(chat_id, started.message["id"], started.turn_id)

    # -- The thread ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            while not self.is_over:
                assert time.monotonic() < self._deadline, f"no end: {self.names[-20:]}"
                try:
                    self._watch_connection()
                except OSError:
                    if self.method != "GET" and not self.events:
                        raise  # a browser does not repeat a POST
                if not self.is_over:
                    time.sleep(RECONNECT_SECONDS)
        except BaseException as exc:  # noqa: BLE001  (raised again in the test's thread)
            self._failure = exc
        finally:
            with self._changed:
                self._changed.notify_all()

    def _watch_connection(self) -> None:
        headers = {**self.headers, "Accept": "text/event-stream"}
        if self.last_event_id:
            headers["Last-Event-ID"] = self.last_event_id
        with Connection(self.client, self.method, self.path, self.body, headers) as connection:
            response = connection.response
            if response.status in (502, 503):
                return
            kind = response.headers["Content-Type"]
            assert response.status == 200, (response.status, response.read())
            assert kind == "text/event-stream; charset=utf-8", kind
            self.connections += 1
            for event in connection.events():
                self._take(event)
                if self.drop_after is not None and len(self.events) >= self.drop_after:
                    self.drop_after = None
                    return

    def _take(self, event: Event | None) -> None:
        with self._changed:
            if event is None:
                self.comments += 1
            else:
                self.events.append(event)
                self.last_event_id = str(event.seq)
                if self.method != "GET":
                    self.method, self.body = "GET", None
                    self.path = f"turns/{event.turn_id}/events/"
            self._changed.notify_all()
