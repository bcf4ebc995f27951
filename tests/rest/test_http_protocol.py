"""What a client sends before its request counts is bounded: the head, trailers, and the time for both and a body."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from amber import up
from amber.processes import wait_until
from amber.web import http_protocol
from amber.web.http_protocol import MAX_HEAD_BYTES

WAIT_SECONDS = 30
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = GET.replace(b"GET", b"POST")
CLOSE = (b"connection", b"close")
TOO_LONG = b"The head of the request is longer than"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Tell how long the body is; at /slow, take longer to answer than a body may rest."""
    if scope["path"] == "/slow":
        await send({"type": "http.response.start", "status": 200, "headers": [CLOSE]})
        await asyncio.sleep(1)
        await send({"type": "http.response.body", "body": b"the end"})
        return
    read, more = 0, True
    while more:
        message = await receive()
        read += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"%d bytes" % read
    length = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http=up.HTTP_PROTOCOL, ws="none", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    assert wait_until(lambda: server.started, timeout_seconds=WAIT_SECONDS)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


def exchange(port: int, *pieces: bytes, pause_seconds: float = 0) -> bytes:
    """All that is answered until the server closes the connection, however much of this it read."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as client:
        answered = b""
        try:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause_seconds)
            while piece := client.recv(65_536):
                answered += piece
        except ConnectionError:
            pass  # it closed while there was more to read
        return answered


def test_the_web_process_speaks_it():
    argv = up.commands({})["web"]
    assert argv[argv.index("--http") + 1] == up.HTTP_PROTOCOL


@pytest.mark.parametrize(
    "endless",
    [
        [GET, b"X-Long: ", *[b"a" * 8_192] * 32],
        [GET, *[b"X-Short: b\r\n" * 700] * 32],
        [b"GET /", *[b"a" * 8_192] * 32],
    ],
    ids=["one header", "many headers", "the address"],
)
def test_a_head_without_end_is_refused(port, endless):
    assert sum(map(len, endless)) > 3 * MAX_HEAD_BYTES
    answered = exchange(port, *endless)
    assert answered == b"" or (answered.startswith(b"HTTP/1.1 400") and TOO_LONG in answered)


def test_a_head_that_is_too_long_is_told_why(port):
    answered = exchange(port, GET + b"X-Long: " + b"a" * MAX_HEAD_BYTES)
    assert answered.startswith(b"HTTP/1.1 400")
    assert TOO_LONG in answered


def test_trailers_without_end_close_the_connection(port):
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
    assert exchange(port, head, *[b"X-Trailer: b\r\n" * 600] * 32) == b""


def test_long_heads_and_bodies_of_any_length_are_taken(port):
    long = b"X-Long: " + b"a" * (MAX_HEAD_BYTES - 1_000) + b"\r\n"
    assert exchange(port, GET + long + b"Connection: close\r\n\r\n").endswith(b"0 bytes")
    size = 20 * MAX_HEAD_BYTES
    head = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
    assert exchange(port, head, b"a" * size).endswith(b"%d bytes" % size)
    chunked = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert exchange(port, chunked, b"1\r\na\r\n" * 20_000, b"0\r\n\r\n").endswith(b"20000 bytes")


def test_each_request_of_a_connection_has_its_own_measure(port):
    most = GET + b"X-Long: " + b"a" * (MAX_HEAD_BYTES // 2) + b"\r\n"
    answered = exchange(port, *[most + b"\r\n"] * 4, most + b"Connection: close\r\n\r\n")
    assert answered.count(b"HTTP/1.1 200") == 5


@pytest.mark.parametrize(
    "begun", [[], [GET], [GET + b"\r\n", GET]], ids=["nothing", "a head", "a later head"]
)
def test_a_head_that_does_not_end_is_not_waited_for(port, monkeypatch, begun):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    answered = exchange(port, *begun)  # returns once the server closes the connection
    assert answered.count(b"HTTP/1.1 200") == max(len(begun) - 1, 0)


def test_a_request_that_came_whole_is_not_hurried(port, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    head = POST + b"Connection: close\r\nContent-Length: 10\r\n\r\n"
    pieces = (head + b"12345", b"67890")
    assert exchange(port, *pieces, pause_seconds=0.8).endswith(b"10 bytes")


@pytest.mark.parametrize(
    "begun",
    [
        [POST + b"Content-Length: 1000\r\n\r\n"],
        [POST + b"Content-Length: 1000\r\n\r\n", *[b"a"] * 20],
        [POST + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\na\r\n"] * 20],
        [POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", *[b"X: b\r\n"] * 20],
    ],
    ids=["nothing", "a byte at a time", "a chunk at a time", "trailers"],
)
def test_a_body_that_makes_no_progress_is_not_waited_for(port, monkeypatch, begun):
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 0.5)
    assert exchange(port, *begun, pause_seconds=0.1) == b""


def test_a_slow_body_that_makes_progress_is_read_to_its_end(port, monkeypatch):
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 1)
    piece = b"a" * http_protocol.BODY_BYTES
    head = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (10 * len(piece))
    answered = exchange(port, head, *[piece] * 10, pause_seconds=0.2)
    assert answered.endswith(b"%d bytes" % (10 * len(piece)))


@pytest.mark.parametrize(
    "upgrade", [b"", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"], ids=str
)
@pytest.mark.parametrize(
    "behind", [b"", POST + b"Content-Length: 4\r\n\r\na"], ids=["alone", "followed"]
)
def test_a_long_answer_is_not_hurried(port, monkeypatch, upgrade, behind):
    """Neither are requests that the client sends behind it, for they are not read meanwhile."""
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 0.3)
    head = GET.replace(b"/", b"/slow", 1) + upgrade + b"\r\n"
    assert exchange(port, head + behind).count(b"the end") == 1
