#!/usr/bin/env python3
"""Ask an assistant and print the answer as it comes; standard library only.

    AMBER_KEY=amb_live_… python3 examples/ask.py "What is 6 times 7?"

Makes a chat, posts the question, follows the turn's events. When the connection drops it connects
again with Last-Event-ID and goes on where it was; `--drop-after 3` drops it on purpose after every
third event. The protocol: docs/stream-protocol.md. `AMBER_URL` says where Amber is.
"""

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

URL = os.environ.get("AMBER_URL", "http://127.0.0.1:8000").rstrip("/")
KEY = os.environ.get("AMBER_KEY", "")
GOES_ON = {"turn.started", "turn.restarted", "turn.waiting", "turn.snapshot"}
"""After every other event `turn.…` the stream ends."""
SILENT_SECONDS = 40
"""Amber sends a heartbeat every 15 seconds; after this the connection is taken for dead."""

Event = dict[str, Any]


def request(method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
    """Send a request. Raises urllib.error.HTTPError, whose body holds Amber's error."""
    sent = urllib.request.Request(
        f"{URL}/api/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
    )
    answer: http.client.HTTPResponse = urllib.request.urlopen(sent, timeout=SILENT_SECONDS)
    return answer


def call(method: str, path: str, body: Any = None, **headers: str) -> Any:
    with request(method, path, body, **headers) as answer:
        return json.load(answer)


def read_events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    """Yield server-sent events, of one `data:` line each; comments are heartbeats."""
    data = ""
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
        elif not line and data:
            yield json.loads(data)
            data = ""


def follow(turn_id: str, *, drop_after: int = 0) -> Iterator[Event]:
    """Yield all events of a turn, each once and in order, over any number of connections."""
    last_id = 0
    while True:
        try:
            with request("GET", f"turns/{turn_id}/events/", Last_Event_ID=str(last_id)) as answer:
                for number, event in enumerate(read_events(answer), start=1):
                    last_id = event["seq"]
                    yield event
                    if event["event"].startswith("turn.") and event["event"] not in GOES_ON:
                        return
                    if number == drop_after:
                        break
        except (TimeoutError, urllib.error.URLError, http.client.HTTPException, OSError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise
            time.sleep(1)


class ShownTurn:
    """The text on the screen: of the running step, and of messages that are stored already."""

    def __init__(self) -> None:
        self.text: dict[int, str] = {}

    def take(self, event: Event) -> None:
        match event["event"]:
            case "text.delta":
                step = event["step"]
                self.text[step] = self.text.get(step, "") + event["text"]
                say(event["text"])
            case "turn.restarted":
                say("\n[a worker died; this step begins again]\n")
                self.text = {s: text for s, text in self.text.items() if s < event["step"]}
            case "turn.snapshot":
                self.text = {int(step): text for step, text in event["text"].items()}
                say("\n[caught up]\n")
                say("".join(m["content"] for m in event["messages"] if m["role"] == "assistant"))
                say("".join(self.text.values()))
            case "tool.started":
                say(f"\n[{event['name']} {event['arguments']}]")
            case "tool.finished":
                say(f" -> {event['content']}\n")
            case "turn.waiting":
                for waiting in event["calls"]:
                    say(f"\n[may it call {waiting['name']} {waiting['arguments']}?]")
                say(f"\n[decide with POST turns/{event['turn_id']}/approve/; this waits]\n")
            case "turn.failed" | "turn.incomplete":
                say(f"\n[{event['event']}: {event['code']}: {event['message']}]")


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def assistant_id() -> str:
    found = call("GET", "assistants/?limit=1")["results"]
    if not found:
        raise SystemExit("There is no assistant. Create one with POST assistants/.")
    return str(found[0]["id"])


def main() -> int:
    arguments = argparse.ArgumentParser(description="Ask an assistant.")
    arguments.add_argument("question")
    arguments.add_argument("--chat", help="Continue this chat instead of a new one.")
    arguments.add_argument("--drop-after", type=int, default=0, metavar="N")
    given = arguments.parse_args()
    if not KEY:
        raise SystemExit("Set AMBER_KEY to an API key.")
    try:
        chat_id = given.chat or call("POST", "chats/", {"assistant_id": assistant_id()})["id"]
        question = {"role": "human", "content": given.question}
        # With this key the POST can be sent again if its answer gets lost: it asks once.
        posted = call(
            "POST", f"chats/{chat_id}/messages/", question, Idempotency_Key=os.urandom(8).hex()
        )
        shown = ShownTurn()
        ended = ""
        for event in follow(posted["turn"]["id"], drop_after=given.drop_after):
            shown.take(event)
            ended = event["event"]
    except urllib.error.HTTPError as error:
        raise SystemExit(error.read().decode())
    except (OSError, http.client.HTTPException) as error:
        raise SystemExit(f"Amber does not answer at {URL}: {getattr(error, 'reason', error)}")
    say(f"\n[{ended}, chat {chat_id}]\n")
    return 0 if ended == "turn.completed" else 1


if __name__ == "__main__":
    sys.exit(main())
