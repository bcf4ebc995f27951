"""The guarded client's redirects, and its limits of time, size and depth, against real servers."""

import asyncio
import socket
import time
import tracemalloc
import zlib
from typing import Any

import pytest

from amber.lib import egress
from amber.lib.egress import (
    EgressPolicy,
    FetchError,
    FetchLimits,
    UnsafeAddress,
    fetch,
    fetch_sync,
)
from amber.lib.tests.egress.guarded_client import QUICK, door, get, guarded, reason_of, through_door
from amber.lib.tests.local_server import LocalServer, Request, raw, say, send_to

# -- Redirects -----------------------------------------------------------------------------------


def test_three_redirects_are_followed_and_a_fourth_is_not(server: LocalServer) -> None:
    for step in range(4):
        server.routes[f"/{step}"] = send_to(f"/{step + 1}")
    policy = through_door(server)
    answer = get(door(server, "/1"), policy)
    assert (answer.body, answer.url) == (b"hello", door(server, "/4"))
    assert reason_of(door(server, "/0"), policy) == "bad_redirect"


def test_a_chain_of_allowed_hops_ends_before_a_forbidden_one(
    server: LocalServer, other: LocalServer
) -> None:
    server.routes["/"] = send_to("/next", 307)
    server.routes["/next"] = send_to(f"http://loopback.test:{other.port}/", 308)
    with pytest.raises(UnsafeAddress):
        get(door(server), through_door(server, other))
    assert (len(server.requests), other.accepted) == (2, 0)


def test_credentials_do_not_leave_their_origin(server: LocalServer, other: LocalServer) -> None:
    server.routes["/"] = send_to("/same")
    server.routes["/same"] = send_to(door(other))
    secrets = {"Authorization": "Bearer s", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "a/b"}
    get(door(server), guarded(allow=["door.test"]), headers=secrets)
    for request in server.requests:
        assert request.headers.items() >= {(k.lower(), v) for k, v in secrets.items()}
    (foreign,) = other.requests
    assert set(foreign.headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert foreign.headers["accept"] == "a/b"


def test_cookies_are_not_kept(server: LocalServer) -> None:
    server.routes["/"] = say(
        b"", status=302, headers={"Location": "/next", "Set-Cookie": "a=1; Path=/"}
    )
    get(door(server), through_door(server))
    get(door(server), through_door(server))
    assert all("cookie" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("HEAD", 302, "HEAD"),
        ("DELETE", 307, "DELETE"),
    ],
)
def test_the_method_after_a_redirect(
    method: str, status: int, then: str, server: LocalServer
) -> None:
    server.routes["/"] = send_to("/next", status)
    body = b"text" if method in ("POST", "PUT") else None
    fetch_sync(method, door(server), content=body, policy=through_door(server), limits=QUICK)
    last = server.requests[-1]
    assert (last.method, last.target) == (then, "/next")
    assert last.body == (b"" if body is None or then == "GET" else body)


def test_a_body_does_not_go_to_another_origin(server: LocalServer, other: LocalServer) -> None:
    server.routes["/"] = send_to(door(other), 307)
    server.routes["/get"] = send_to(door(other), 303)
    policy = guarded(allow=["door.test"])
    with pytest.raises(FetchError, match="redirects"):
        fetch_sync("POST", door(server), json={"a": 1}, policy=policy, limits=QUICK)
    assert other.accepted == 0
    fetch_sync("POST", door(server, "/get"), json={"a": 1}, policy=policy, limits=QUICK)
    assert (other.requests[0].method, other.requests[0].body) == ("GET", b"")


def test_a_redirect_without_a_location_is_an_answer(server: LocalServer) -> None:
    server.routes["/"] = say(b"choose", status=302)
    assert get(door(server), through_door(server)).status == 302


# -- Time and size -------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 X\r\n"


def endless(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"x" * 65_536)


def slow(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def silent(connection: socket.socket, _: Request) -> None:
    connection.recv(1)


def trickled_head(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.02)


def forever_about_to(connection: socket.socket, _: Request) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


@pytest.mark.parametrize("answer", [slow, silent, trickled_head, forever_about_to])
def test_time_is_limited_as_a_whole(answer: Any, server: LocalServer) -> None:
    server.routes["/"] = answer
    limits = FetchLimits(total_seconds=0.4)
    assert reason_of(door(server), through_door(server), limits) == "timeout"


def test_an_endless_body_is_cut(server: LocalServer) -> None:
    server.routes["/"] = endless
    limits = FetchLimits(max_bytes=1_000_000, total_seconds=5)
    assert reason_of(door(server), through_door(server), limits) == "too_large"


def test_a_body_of_exactly_the_limit_is_taken(server: LocalServer) -> None:
    server.routes["/"] = say(b"x" * 1000)
    policy = through_door(server)
    assert len(get(door(server), policy, FetchLimits(max_bytes=1000)).body) == 1000
    assert reason_of(door(server), policy, FetchLimits(max_bytes=999)) == "too_large"


def gzipped(megabytes: int) -> bytes:
    squeeze = zlib.compressobj(9, wbits=31)
    zeros = b"\0" * 1_000_000
    return b"".join(squeeze.compress(zeros) for _ in range(megabytes)) + squeeze.flush()


def test_a_gzip_bomb_is_cut_without_being_held_in_memory(server: LocalServer) -> None:
    server.routes["/"] = say(gzipped(200), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        assert reason_of(door(server), through_door(server)) == "too_large"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40_000_000


def test_a_bomb_within_a_bomb_is_cut(server: LocalServer) -> None:
    twice = zlib.compress(gzipped(200))
    server.routes["/"] = say(twice, headers={"Content-Encoding": "gzip, deflate"})
    assert reason_of(door(server), through_door(server)) == "too_large"


def test_compressed_answers_are_decoded(server: LocalServer) -> None:
    server.routes["/"] = say(gzipped(1), headers={"Content-Encoding": "gzip"})
    assert get(door(server), through_door(server)).body == b"\0" * 1_000_000


@pytest.mark.parametrize(
    "parts",
    [
        (b"SSH-2.0-OpenSSH_9.0\r\n",),
        (b"",),
        (HEAD + b"Content-Length: 100\r\n\r\n", b"short"),
        (HEAD + b"Content-Length: -1\r\n\r\n",),
        (HEAD + b"X-A: " + b"b" * 200_000 + b"\r\n\r\n",),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",),
        (b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(
    parts: tuple[bytes, ...], server: LocalServer
) -> None:
    server.routes["/"] = raw(*parts)
    assert reason_of(door(server), through_door(server)) in ("bad_answer", "unreachable")


def test_a_closed_port_is_unreachable(server: LocalServer) -> None:
    with LocalServer() as gone:
        pass
    assert reason_of(door(gone), guarded(allow=["door.test"])) == "unreachable"


def test_cancelling_a_fetch_closes_the_connection(server: LocalServer) -> None:
    closed: list[bytes] = []
    server.routes["/"] = lambda connection, _: closed.append(connection.recv(1))

    async def cancelled() -> None:
        task = asyncio.create_task(fetch("GET", door(server), policy=through_door(server)))
        while not server.requests:  # noqa: ASYNC110  (the server is a thread)
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    ends_at = time.monotonic() + 5
    while not closed and time.monotonic() < ends_at:
        time.sleep(0.01)
    assert closed == [b""]


# -- What is sent, what comes back -----------------------------------------------------------------


def test_json_goes_out_and_comes_back(server: LocalServer) -> None:
    server.routes["/"] = say(b'{"content": "42"}', headers={"Content-Type": "application/json"})
    answer = fetch_sync("POST", door(server), json={"a": "ü"}, policy=through_door(server))
    (request,) = server.requests
    assert request.body == '{"a":"ü"}'.encode()
    assert request.headers["content-type"] == "application/json"
    assert (answer.json(), answer.mime_type, answer.is_success) == (
        {"content": "42"},
        "application/json",
        True,
    )


@pytest.mark.parametrize(
    "body",
    [b"[" * 51 + b"]" * 51, b'{"a":' * 51 + b"1" + b"}" * 51, b"[" * 100_000, b"{", b"", b"NaN"],
    ids=["arrays", "objects", "open", "cut", "empty", "nan"],
)
def test_deep_or_broken_json_is_not_parsed(body: bytes, server: LocalServer) -> None:
    server.routes["/"] = say(body)
    answer = get(door(server), through_door(server))
    with pytest.raises(FetchError) as caught:
        answer.json()
    assert caught.value.reason == "bad_answer"


def test_json_as_deep_as_the_limit_is_parsed(server: LocalServer) -> None:
    server.routes["/"] = say(b"[" * 50 + b'"]]]{{{"' + b"]" * 50)
    value = get(door(server), through_door(server)).json()
    for _ in range(50):
        (value,) = value
    assert value == "]]]{{{"


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=gbk", "健康".encode("gbk"), "健康"),
        ("text/html", "健康".encode(), "健康"),
        ("text/plain; charset=bz2", b"plain", "plain"),
        ("text/plain; charset=punycode", b"a-b", "a-b"),
        ("text/plain; charset=nonsense", b"\xff", "\ufffd"),
    ],
)
def test_text_is_decoded_by_known_charsets(
    content_type: str, body: bytes, text: str, server: LocalServer
) -> None:
    server.routes["/"] = say(body, headers={"Content-Type": content_type})
    assert get(door(server), through_door(server)).text() == text


def test_headers_of_the_connection_are_not_the_callers(server: LocalServer) -> None:
    headers = {"Host": "x", "Transfer-Encoding": "chunked", "Proxy-Authorization": "x", "X": "é"}
    get(door(server), through_door(server), headers=headers)
    (request,) = server.requests
    assert request.headers["host"] == f"door.test:{server.port}"
    assert not request.headers.keys() & {"transfer-encoding", "proxy-authorization"}
    assert request.headers["x"].encode("latin-1").decode() == "é"


def test_a_header_cannot_smuggle_another(server: LocalServer) -> None:
    with pytest.raises(FetchError):
        get(door(server), through_door(server), headers={"X": "a\r\nY: b"})
    assert server.requests == []


def test_connect_is_no_method() -> None:
    with pytest.raises(ValueError, match="CONNECT"):
        fetch_sync("CONNECT", "http://a.test/", policy=EgressPolicy())


def test_the_limits_are_those_of_the_rule() -> None:
    assert FetchLimits() == FetchLimits(10, 30, 10_000_000, 3)
    assert egress.MAX_JSON_DEPTH == 50
