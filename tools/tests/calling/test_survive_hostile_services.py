"""Refuse services that answer too much, too slowly or for ever, at little cost in memory.

A worker's memory is measured in a process of its own (`hostile_bodies`), since that of a test run
says nothing.
"""

import json
import os
import subprocess
import sys
import time
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from amber.lib.tests.local_server import Answer, Request, raw, say
from tools.services import create_tool
from tools.source import DiscoveryError
from tools.tests.services import say_json

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
MAX_GROWTH_MIB = 50
HEAD = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n"


def endless(connection: Any, _: Request) -> None:
    connection.sendall(HEAD + b"\r\n[")
    while True:
        connection.sendall(b"[]," * 20_000)


def slow(connection: Any, _: Request) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.02)


@cache
def new_bomb(*, megabytes: int = 300) -> Answer:
    """Make a compressed bomb. It costs a core two seconds, so not at import or in a request."""
    squeeze = zlib.compressobj(9, wbits=31)
    zeros = b" " * 1_000_000
    body = b"".join(squeeze.compress(zeros) for _ in range(megabytes)) + squeeze.flush()
    return say(body, headers={"Content-Encoding": "gzip"})


def bomb(connection: Any, request: Request) -> None:
    new_bomb()(connection, request)


@pytest.fixture(scope="module", autouse=True)
def bomb_at_hand() -> None:
    new_bomb()


def manifest_of(megabytes: int) -> Answer:
    return say_json({"name": "x" * megabytes * 1_000_000})


# Just below the largest manifest that is read, and as many objects as fit.
WORST_JSON = say(b"[" + b"[]," * 333_000 + b"[]]")
WRONG_FUNCTIONS = say(b'{"functions":[' + b"0," * 490_000 + b"0]}")

TOO_MUCH: dict[str, Answer] = {
    "10 MB": manifest_of(10),
    "200 MB announced": raw(HEAD + b"Content-Length: 200000000\r\n\r\n[]"),
    "endless": endless,
    "gzip bomb": bomb,
}
UNUSABLE: dict[str, Answer] = {
    "half a million wrong functions": WRONG_FUNCTIONS,
    "a million lists": WORST_JSON,
    "endless depth": say(b"[" * 900_000),
}


@pytest.mark.parametrize("name", [*TOO_MUCH, *UNUSABLE])
def test_is_refused_in_words_that_say_nothing_of_the_body(bob, weather, name):
    weather.route("/manifest", (TOO_MUCH | UNUSABLE)[name])
    with pytest.raises(DiscoveryError) as caught:
        create_tool(bob.principal, given={"kind": "discovery", "discovery_url": weather.url})
    if name in TOO_MUCH:
        assert caught.value.message == "The answer is too large."
    assert len(json.dumps(caught.value.fields)) < 5_000


def test_a_slow_service_is_not_waited_for(bob, weather, monkeypatch):
    monkeypatch.setattr("tools.connections.inspection.DISCOVERY_SECONDS", 0.3)
    weather.route("/manifest", slow)
    with pytest.raises(DiscoveryError, match="did not answer in time"):
        create_tool(bob.principal, given={"kind": "discovery", "discovery_url": weather.url})


def test_memory_grows_little_whatever_services_answer(weather):
    """Return the peak of a process that meets all bodies, as manifests and as answers."""
    bodies = TOO_MUCH | UNUSABLE | {"5 MB": say(b'{"content":"' + b"\\u00e9" * 900_000 + b'"}')}
    for number, answer in enumerate(bodies.values()):
        weather.route(f"/{number}", answer)
    urls = [weather.address(f"/{number}") for number in range(len(bodies))]
    environment = {**os.environ, "AMBER_TOOL_ALLOWED_HOSTS": weather.host}
    done = subprocess.run(
        [sys.executable, "-m", "tools.tests.calling.hostile_bodies", weather.url, *urls],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    growth = json.loads(done.stdout)
    assert max(growth.values()) < MAX_GROWTH_MIB, growth
