"""Requests through the web process's own ASGI handler, so that later answers and leaving are real."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amber.lib import redis as amber_redis
from amber.web.single_thread_handler import SingleThreadHandler
from public_api.tests.openai_forms import Said, faults_of, keep

EXCHANGE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        said: dict[str, Any] = self.json()["error"]
        return said


def request(
    method: str,
    path: str,
    *,
    body: Any = None,
    headers: dict[str, str] | None = None,
    leave_when: Callable[[], object] | None = None,
) -> Answer | None:
    """None if the client left before there was an answer: as soon as `leave_when()` returns."""

    async def exchange() -> Answer | None:
        handler = SingleThreadHandler()
        try:
            async with asyncio.timeout(EXCHANGE_SECONDS):
                return await _exchanged(handler, method, path, body, headers or {}, leave_when)
        finally:
            handler._threads.shutdown()
            await amber_redis.close_async_clients()

    return asyncio.run(exchange())


async def _exchanged(
    handler: SingleThreadHandler,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    leave_when: Callable[[], object] | None,
) -> Answer | None:
    content = b"" if body is None else body if isinstance(body, bytes) else _json(body)
    incoming = [{"type": "http.request", "body": content}]
    headers = {"content-length": str(len(content))} | headers
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        if leave_when is None:
            await asyncio.Event().wait()
        else:
            await asyncio.to_thread(leave_when)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with contextlib.suppress(asyncio.CancelledError):
        await handler(_scope(method, path, headers), receive, send)
    if not sent:
        return None
    answer = Answer(
        sent[0]["status"],
        {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
    kind = answer.headers.get("content-type", "")
    said = Said(method, path, answer.status, kind, answer.body, leave_when is None)
    keep(said)
    faults = faults_of(said)
    assert not faults, "\n".join(faults)
    return answer


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


def _scope(method: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
    given = {"host": "testserver", "content-type": "application/json"} | headers
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
