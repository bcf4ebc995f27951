"""Rubbish over real sockets: a clear 4xx in the one form of errors, no trace in any log."""

import json
import socket

import pytest

from tests.e2e.kit.client import Client, Viewer
from tests.e2e.kit.transcripts import check_stored

pytestmark = pytest.mark.e2e

NOBODYS = "01a1fd44-0000-7000-8000-000000000000"

BODIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "content"),
    (b"{", 400, ""),
    (b"null", 400, ""),
    (b"[]", 400, ""),
    (b'"text"', 400, ""),
    (b"\xff\xfe{}", 400, ""),
    (b"[" * 100_000, 400, ""),
    (b'{"a":' * 100_000, 400, ""),
    (b'{"content": 1e999}', 400, ""),
    (b'{"content": NaN}', 400, ""),
    (b'{"content": null}', 400, "content"),
    (b'{"content": {"a": 1}}', 400, "content"),
    (b'{"content": ["a"]}', 400, "content"),
    (b'{"content": true}', 400, "content"),
    (b'{"content": " \\n\\t "}', 400, "content"),
    (b'{"content": "a\\u0000b"}', 400, "content"),
    (b'{"content": "a\\ud800b"}', 400, ""),
    (json.dumps({"content": "a" * 200_001}).encode(), 400, "content"),
    (b'{"content": "a", "role": "wizard"}', 400, "role"),
    (b'{"content": "a", "role": "tool"}', 400, "role"),
    (b'{"content": "a", "role": "tool_call"}', 400, "role"),
    (b'{"content": "a", "role": "knowledge"}', 400, "role"),
    (b'{"content": "a", "role": null}', 400, "role"),
    (b'{"content": "a", "role": ["human"]}', 400, "role"),
    (b'{"role": "file"}', 400, "file_id"),
    (b'{"content": "a", "assistant_id": "x"}', 400, "assistant_id"),
    (b'{"content": "a", "parent_id": [7]}', 400, "parent_id"),
    (json.dumps({"content": "a", "assistant_id": NOBODYS}).encode(), 404, ""),
    (json.dumps({"content": "a", "parent_id": NOBODYS}).encode(), 404, ""),
    (json.dumps({"role": "file", "file_id": NOBODYS}).encode(), 404, ""),
]


def test_refuses_bodies_that_are_no_message(platform, ann):
    chat_id = ann.new_chat()
    for body, status, field in BODIES:
        answer = ann.post(f"chats/{chat_id}/messages/", body)
        assert answer.status == status, (body[:100], answer)
        assert {"code", "message", "request_id"} <= set(answer.error), body[:100]
        assert not field or field in answer.error.get("fields", {}), (body[:100], answer.error)
        streamed = ann.post(
            f"chats/{chat_id}/messages/", body, headers={"Accept": "text/event-stream"}
        )
        assert (streamed.status, streamed.error["code"]) == (status, answer.error["code"])
    assert ann.messages(chat_id) == []


def test_a_chat_with_nobody_to_ask_says_so(platform, ann):
    chat = ann.post("chats/", {}).body
    answer = ann.post(f"chats/{chat['id']}/messages/", {"content": "Anybody?"})
    assert (answer.status, answer.error["code"]) == (400, "no_assistant")
    assert ann.messages(chat["id"]) == []


@pytest.mark.parametrize(
    "path",
    [
        "turns/nonsense/events/",
        f"turns/{NOBODYS}/events/",
        f"turns/{NOBODYS}/cancel/",
        "turns/%00/",
        "turns/../../etc/passwd/",
        f"chats/{NOBODYS}/messages/?limit=x",
        "chats/%F0%9F%A6%80/",
        "chats/" + "a" * 8_000 + "/",
    ],
)
def test_knows_no_such_place(platform, ann, path):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = ann.request(method, path, {} if method != "GET" else None)
        assert answer.status in (400, 404, 405, 414), (method, answer)
        assert answer.error["code"] in ("invalid", "not_found", "method_not_allowed"), answer


@pytest.mark.parametrize("key", ["", "nonsense", "amb_live_" + "a" * 36, "ключ", "a" * 5_000])
def test_a_stream_needs_a_key_that_opens(platform, ann, key):
    asked = ann.ask("Hello [[fake tokens=1]]")
    code = "invalid_credential" if key else "not_authenticated"
    stranger = Client(ann.port, key=key.encode().decode("latin1"))
    for path in (f"turns/{asked.turn_id}/events/", f"turns/{asked.turn_id}/"):
        answer = stranger.get(path)
        assert (answer.status, answer.error["code"]) == (401, code), answer
    ann.ended(asked.turn_id)


RAW = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /api/v1/chats/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/v1/chats/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n{",
    b"POST /api/v1/chats/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("said", RAW)
def test_survives_what_is_no_request(platform, ann, said):
    with socket.create_connection(("127.0.0.1", ann.port), timeout=2) as connection:
        try:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(4096)
        except OSError:
            answer = b""
        assert answer == b"" or answer.split(b" ")[1][:1] in (b"2", b"4"), answer
    assert ann.get("/healthz").status == 200


def test_viewers_who_leave_at_any_moment_leave_nothing_behind(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=100 itl=30]]")
    request = (
        f"GET /api/v1/turns/{asked.turn_id}/events/ HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {ann.key}\r\n\r\n"
    ).encode()
    for read_bytes in (0, 0, 1, 50, 500, 3_000) * 5:
        with socket.create_connection(("127.0.0.1", ann.port), timeout=5) as connection:
            connection.sendall(request)
            if read_bytes:
                connection.recv(read_bytes)
    check_stored(ann, asked, ann.watch(asked).to_the_end())


def test_a_reader_who_leaves_does_not_stop_a_posted_question(platform, ann):
    chat_id = ann.new_chat()
    viewer = Viewer(
        ann,
        "POST",
        f"chats/{chat_id}/messages/",
        {"content": "Tell me. [[fake tokens=50 itl=30]]"},
        drop_after=2,
    )
    events = viewer.to_the_end()
    check_stored(ann, viewer.asked(chat_id), events)
    assert viewer.connections == 2
