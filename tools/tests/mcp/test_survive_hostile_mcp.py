"""Call servers that break, lie or never end."""

import asyncio
import gzip
import importlib
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from amber.lib.tests.egress.guarded_client import guarded
from amber.lib.tests.egress.hostile_urls import HOSTILE_URLS
from amber.lib.tests.local_server import raw, say, send_to
from engine.tools import ToolSpec
from tools.mcp.source import MCPFunction
from tools.mcp.transport import MAX_REQUESTS
from tools.outgoing.requests import ServiceError
from tools.protocol import ToolError, ToolOutput
from tools.source import Connection
from tools.tests.mcp.stub import JSON, SSE, WENT, error_of, in_turn, method_of, result_of, stub

ROOT = Path(__file__).resolve().parents[3]
STREAM = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n"
NOT_KNOWN = "It is not known whether the call was carried out."


def go(port, *, host="127.0.0.1", is_idempotent=False, api_key="sesame-key"):
    connection = Connection(f"http://{host}:{port}/mcp", api_key=api_key)
    spec = ToolSpec("go", "Goes.", {"type": "object"})
    return MCPFunction(connection, "2025-11-25", spec=spec, is_idempotent=is_idempotent)


@pytest.fixture
def call(server, settings, context):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]

    def make_call(*, is_idempotent=False, **answers):
        named = {name.replace("_", "/"): answer for name, answer in answers.items()}
        server.routes["/mcp"] = stub(named)
        function = go(server.port, is_idempotent=is_idempotent)
        return asyncio.run(function.call({}, context))

    return make_call


def times(server, method):
    return sum(method_of(each) == method for each in server.requests)


def in_pieces(piece, number):
    def answer(connection, _):
        connection.sendall(STREAM)
        for _ in range(number):
            connection.sendall(piece)

    return answer


# -- Breaking off ------------------------------------------------------------------------------


def test_a_stream_that_closes_leaves_the_outcome_unknown(call, server):
    with pytest.raises(ServiceError, match=NOT_KNOWN):
        call(tools_call=raw(STREAM))
    assert times(server, "tools/call") == 1


def test_a_connection_that_closes_without_an_answer_does_so_too(call, server):
    with pytest.raises(ServiceError, match=NOT_KNOWN):
        call(tools_call=raw(b""))
    assert times(server, "tools/call") == 1


def test_what_breaks_before_the_call_is_sent_leaves_nothing_unknown(call, server):
    with pytest.raises(ServiceError) as caught:
        call(initialize=raw(b""))
    assert NOT_KNOWN not in str(caught.value)
    assert times(server, "tools/call") == 0


def test_an_idempotent_call_is_made_again(call, server):
    broken_once = in_turn(raw(STREAM), result_of(WENT))
    assert call(is_idempotent=True, tools_call=broken_once) == ToolOutput("gone")
    keys = [each.headers.get("idempotency-key") for each in server.requests]
    assert times(server, "tools/call") == 2
    assert times(server, "initialize") == 2
    assert set(keys) == {None}, "this context has no call id"


def test_a_stream_that_breaks_may_be_taken_up_where_it_was(call, server):
    begun = STREAM + b"id: 7\nretry: 1\ndata:\n\n"
    done = orjson.dumps({"jsonrpc": "2.0", "id": 2, "result": WENT})
    resumed = say(b"id: 8\ndata: " + done + b"\n\n", headers=SSE)
    assert call(tools_call=raw(begun), GET=resumed) == ToolOutput("gone")
    assert times(server, "tools/call") == 1
    assert [each.headers.get("last-event-id") for each in server.requests if each.method == "GET"]


def test_a_stream_that_always_breaks_is_not_taken_up_for_ever(call, server):
    begun = raw(STREAM + b"id: 7\nretry: 1\ndata:\n\n")
    with pytest.raises(ServiceError):
        call(tools_call=begun, GET=begun)
    assert len(server.requests) <= MAX_REQUESTS + 1


def test_a_session_the_server_has_forgotten_is_begun_anew(call, server):
    forgotten_once = in_turn(say(b"", status=404), result_of(WENT))
    assert call(tools_call=forgotten_once) == ToolOutput("gone")
    assert times(server, "initialize") == 2


def test_a_server_that_always_forgets_is_asked_twice(call, server):
    with pytest.raises(ServiceError, match="status 404"):
        call(tools_call=say(b"", status=404))
    assert times(server, "tools/call") == 2


def test_no_stream_of_the_servers_own_is_opened_and_sessions_are_ended(call, server):
    call()
    assert times(server, "GET") == 0
    assert times(server, "DELETE") == 1


def test_a_silent_farewell_costs_no_result(call, monkeypatch):
    monkeypatch.setattr("tools.mcp.transport.GOODBYE_SECONDS", 0.1)
    assert call(DELETE=lambda connection, _: connection.recv(1)) == ToolOutput("gone")


# -- Errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (say(b"", status=401), r"refused Amber's key \(status 401\)"),
        (say(b"", status=500), "failed with status 500"),
        (error_of(-32603, "Out of cheese."), "Out of cheese."),
        (say(b"<html>", headers={"Content-Type": "text/html"}), "Unexpected content type"),
        (say(b"{", headers=JSON), "It says"),
        (say(b"", status=202), "202 Accepted"),
        (result_of({"content": 7}), "does not keep to the protocol"),
        (result_of({"content": [{"type": "text"}]}), "does not keep to the protocol"),
        (say(b"data: nonsense\n\n", headers=SSE), "It says"),
    ],
    ids=["401", "500", "error", "page", "no-json", "202", "content", "block", "event"],
)
def test_an_answer_that_is_no_result_is_a_failure_with_a_reason(call, server, answer, said):
    with pytest.raises(ServiceError, match=said) as caught:
        call(tools_call=answer)
    assert times(server, "tools/call") == 1
    assert len(str(caught.value)) < 1_000


def test_an_idempotent_call_is_made_again_when_the_server_is_busy(call, server):
    busy = in_turn(say(b"", status=503), say(b"", status=429), result_of(WENT))
    assert call(is_idempotent=True, tools_call=busy) == ToolOutput("gone")


def test_a_key_that_is_echoed_is_not_shown(call):
    with pytest.raises(ServiceError) as refused:
        call(tools_call=error_of(-1, "sesame-key is wrong"))
    with pytest.raises(ToolError) as failed:
        said = {"type": "text", "text": "no sesame-key"}
        call(tools_call=result_of({"content": [said], "isError": True}))
    assert "sesame-key" not in f"{refused.value} {refused.value.detail} {failed.value}"


def test_nothing_a_server_says_reaches_the_log(call, caplog):
    with pytest.raises(ServiceError):
        call(tools_call=say(b'{"leak":"xyzzy"}', headers=JSON))
    call(tools_call=result_of({"content": [{"type": "text", "text": "xyzzy"}]}))
    assert "xyzzy" not in caplog.text
    assert "first" not in caplog.text, "the session's id"


# -- Size --------------------------------------------------------------------------------------


def test_an_endless_stream_is_cut(call, server):
    sent = threading.Event()

    def endless(connection, _):
        connection.sendall(STREAM)
        try:
            while True:
                connection.sendall(b": nothing\n" * 1_000)
        finally:
            sent.set()

    with pytest.raises(ServiceError, match="The answer is too large"):
        call(tools_call=endless)
    assert sent.wait(10), "the connection was closed"


@pytest.mark.parametrize(
    "answer",
    [
        in_pieces(b"data: " + b"x" * 100_000, 200),
        in_pieces(b'event: message\ndata: {"jsonrpc":"2.0","method":"x"}\n\n', 250_000),
        raw(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n\r\n[" + b"[]," * 1_000_000),
        say(b"x", headers={**JSON, "Content-Length": "99999999"}),
    ],
    ids=["one-event", "many-events", "many-values", "declared"],
)
def test_too_much_of_anything_is_refused(call, answer):
    with pytest.raises(ServiceError, match="The answer is too large"):
        call(tools_call=answer)


def test_a_compressed_answer_is_refused_unread(call):
    bomb = gzip.compress(b" " * 10_000_000)
    with pytest.raises(ServiceError, match="did not send a usable answer"):
        call(tools_call=say(bomb, headers={**JSON, "Content-Encoding": "gzip"}))


def test_an_answer_nested_without_end_is_refused(call):
    with pytest.raises(ServiceError):
        call(tools_call=say(b'{"jsonrpc":"2.0","id":2,"result":' + b"[" * 100_000, headers=JSON))


# -- Addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_elsewhere_is_not_followed(call, other, status):
    with pytest.raises(ServiceError):
        call(tools_call=send_to(f"http://127.0.0.1:{other.port}/mcp", status))
    assert other.accepted == 0


@pytest.mark.parametrize("asked", ["elicitation/create", "sampling/createMessage", "roots/list"])
def test_what_a_server_asks_of_the_user_is_refused_and_the_call_goes_on(call, server, asked):
    """The server asks in the middle of the call, and gives its result once it was refused."""
    schema = {"type": "object", "properties": {}}
    params = {
        "message": "Your password?",
        "requestedSchema": schema,
        "messages": [],
        "maxTokens": 1,
    }
    question = {"jsonrpc": "2.0", "id": "q1", "method": asked, "params": params}

    def ask(connection, request):
        connection.sendall(STREAM + event(question))
        deadline = time.monotonic() + 10
        while not times(server, "answer") and time.monotonic() < deadline:
            time.sleep(0.01)
        number = orjson.loads(request.body)["id"]
        connection.sendall(event({"jsonrpc": "2.0", "id": number, "result": WENT}))

    assert call(tools_call=ask).text == "gone"
    (refusal,) = [orjson.loads(r.body) for r in server.requests if method_of(r) == "answer"]
    assert refusal["id"] == "q1"
    assert "error" in refusal


def event(message):
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"


def test_a_tool_that_wants_more_input_has_the_model_ask_first():
    """As servers of 2026-07-28 answer, instead of asking in the middle of a call."""
    session: Any = importlib.import_module("tools.mcp.session")

    async def send_request(*_):
        return session.mcp_types.InputRequiredResult(request_state="1")

    client: Any = SimpleNamespace(session=SimpleNamespace(send_request=send_request))
    with pytest.raises(session.MCPError, match="Ask the user, and give it with the arguments"):
        asyncio.run(session._call(client, "go", {}))


def test_a_redirect_in_a_circle_ends(call, server):
    with pytest.raises(ServiceError):
        call(tools_call=send_to("/mcp", 307))
    assert times(server, "tools/call") <= 4


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=range(len(HOSTILE_URLS)))
def test_no_hostile_address_is_connected_to(server, context, monkeypatch, url):
    policy = guarded(server.port)  # the port is open: only the judgement of the address is between
    monkeypatch.setattr("tools.mcp.session.installation_policy", lambda: policy)
    connection = Connection(url.replace("{port}", str(server.port)), api_key="sesame-key")
    spec = ToolSpec("go", "Goes.", {"type": "object"})
    function = MCPFunction(connection, "", spec=spec, is_idempotent=True)
    with pytest.raises(ServiceError, match="not one that may be called"):
        asyncio.run(function.call({}, context))
    assert server.accepted == 0


# -- Giving up ---------------------------------------------------------------------------------


def test_a_cancelled_call_ends_although_the_server_says_nothing_more(
    server, settings, context, monkeypatch
):
    monkeypatch.setattr("tools.mcp.session.FAREWELL_SECONDS", 0.1)
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    called, closed = threading.Event(), threading.Event()

    def wait_for_the_end(connection, _):
        connection.sendall(STREAM)
        called.set()
        assert connection.recv(1) == b""
        closed.set()

    def hang(connection, _):
        connection.recv(1)

    silent = {"tools/call": wait_for_the_end, "notifications/cancelled": hang, "DELETE": hang}
    server.routes["/mcp"] = stub(silent)

    async def cancel_in_the_middle():
        calling = asyncio.ensure_future(go(server.port).call({}, context))
        assert await asyncio.to_thread(called.wait, 10)
        calling.cancel()
        await asyncio.wait({calling})
        assert calling.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancel_in_the_middle())
    assert closed.wait(10)


def test_a_process_without_mcp_tools_does_not_carry_the_sdk():
    code = "import tools.mcp.source, sys; sys.exit(bool({'mcp', 'mcp_types'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
