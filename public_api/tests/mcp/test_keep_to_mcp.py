"""The MCP server before the protocol authors' own suite, which `make test-mcp` installs.

The suite sends no credential, so a proxy adds one. Its other scenarios want tools, resources or
prompts of fixed names, which this server does not have.
"""

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from public_api.tests.live_server import until

SUITE = (
    Path(__file__).resolve().parents[3]
    / "var/mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js"
)
SCENARIOS = ("server-initialize", "ping", "tools-list")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not SUITE.exists() or not shutil.which("node"), reason="make test-mcp installs it"
    ),
]


@contextmanager
def proxy(address: str, key: str) -> Iterator[str]:
    """An address that passes requests on, with the key."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        passed = [(n, v) for n, v in scope["headers"] if n not in (b"host", b"content-length")]
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            answer = await http.request(
                scope["method"],
                f"{address}{scope['path']}",
                headers=[*passed, (b"authorization", f"Bearer {key}".encode())],
                content=body,
            )
        kept = [(n.lower(), v) for n, v in answer.headers.raw if n.lower() != b"transfer-encoding"]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        await send({"type": "http.response.body", "body": answer.content})

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, lifespan="off", log_config=None))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenarios_that_apply_hold(address, alice, scenario):
    with proxy(address, alice.new_key(scopes=["mcp"])[1]) as url:
        command = ["node", str(SUITE), "server", "--url", f"{url}/mcp", "--scenario", scenario]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failed" in run.stdout, run.stdout
