"""One line in the log for each request, as loud as somebody needs to know it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from amber.web.request_log import log_requests


def log_of(path: str, status: int) -> dict[str, Any]:
    """The line of a request that is answered with this status."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        """Nobody reads it."""

    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    with capture_logs() as lines:
        asyncio.run(log_requests(answer)(scope, None, send))  # type: ignore[arg-type]
    (line,) = lines
    return dict(line)


@pytest.mark.parametrize(
    ("path", "status", "level"),
    [
        ("/api/v1/chats/", 200, "info"),
        ("/api/v1/chats/", 404, "info"),
        ("/api/v1/chats/", 500, "error"),
        ("/healthz", 200, "debug"),
        ("/readyz", 503, "error"),
        ("/static/web/app/main.js", 200, "debug"),
        ("/static/web/app/main.js", 304, "debug"),
        ("/static/web/app/lost.js", 404, "info"),
    ],
)
def test_what_nobody_looks_for_is_a_line_for_debugging(path, status, level):
    line = log_of(path, status)
    assert line["log_level"] == level
    assert (line["event"], line["path"], line["status"]) == ("request", path, status)
