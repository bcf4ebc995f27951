"""Answer like an MCP server of an older protocol, message by message, so that tests can misbehave.

    routes = {"/mcp": stub({"tools/call": say(b"", status=500)})}

Methods that are not given are answered as they should be; the session's id is "first".
"""

import socket
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from amber.lib.tests.local_server import Answer, Request, say

Result = Callable[[dict[str, Any]], Any]
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}

ABOUT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "Stub", "version": "1"},
}
TOOL = {"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}
WENT = {"content": [{"type": "text", "text": "gone"}]}


def stub(answers: Mapping[str, Answer]) -> Answer:
    usual = {
        "server/discover": say(b"", status=400),
        "initialize": result_of(ABOUT, {"Mcp-Session-Id": "first"}),
        "notifications/initialized": say(b"", status=202),
        "tools/list": result_of({"tools": [TOOL]}),
        "tools/call": result_of(WENT),
        "DELETE": say(b"", status=204),
        "answer": say(b"", status=202),
    }

    def answer(connection: socket.socket, request: Request) -> None:
        said = method_of(request)
        (usual | dict(answers)).get(said, say(b"", status=405))(connection, request)

    return answer


def method_of(request: Request) -> str:
    """Return the JSON-RPC method, "answer" for an answer, or that of HTTP if there is no message."""
    return (
        str(orjson.loads(request.body).get("method", "answer")) if request.body else request.method
    )


def result_of(result: Any, headers: Mapping[str, str] | None = None) -> Answer:
    return _message({"result": result}, headers)


def error_of(code: int, message: str) -> Answer:
    return _message({"error": {"code": code, "message": message}})


def _message(message: dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    def answer(connection: socket.socket, request: Request) -> None:
        number = orjson.loads(request.body)["id"]
        body = orjson.dumps({"jsonrpc": "2.0", "id": number, **message})
        say(body, headers={**JSON, **(headers or {})})(connection, request)

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Give the answers in turn, and the last one for ever."""
    left = list(answers)

    def answer(connection: socket.socket, request: Request) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(connection, request)

    return answer
