"""Use the reference server of the protocol's authors, in Node.js, where it is installed.

`make test-mcp` installs `@modelcontextprotocol/server-everything` under var/mcp and runs this.
"""

import asyncio
import gzip
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.ports import free_port
from tools.mcp.source import MCPSource
from tools.protocol import ToolError
from tools.source import Connection

SERVER = (
    Path(__file__).resolve().parents[3]
    / "var/mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)
PNG = b"\x89PNG\r\n\x1a\n"

pytestmark = pytest.mark.skipif(
    not SERVER.exists() or shutil.which("node") is None,
    reason="the npm package is not installed; `make test-mcp` does it",
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    free = free_port()
    environ = {**os.environ, "PORT": str(free)}
    quiet = subprocess.DEVNULL
    argv = ["node", str(SERVER), "streamableHttp"]
    process = subprocess.Popen(argv, env=environ, stdout=quiet, stderr=quiet)
    try:
        while not _answers(free):
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        yield free
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.fixture
def functions(port, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{port}"]
    connection = Connection(f"http://127.0.0.1:{port}/mcp", name="everything")
    found = asyncio.run(MCPSource().discover(connection))
    assert found.data["protocol_version"] == "2025-11-25"
    return {each.spec.name: each for each in MCPSource().functions(connection, found.data)}


@pytest.fixture
def call(functions, context):
    def make_call(name, **arguments):
        return asyncio.run(functions[name].call(arguments, context))

    return make_call


def test_its_tools_are_found(functions):
    assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= functions.keys()
    assert functions["get-sum"].is_idempotent


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("echo", {"message": "hello"}, "Echo: hello"),
        ("get-sum", {"a": 9.0, "b": 6.0}, "The sum of 9 and 6 is 15."),
        ("get-structured-content", {"location": "New York"}, '{"temperature":33,'),
        ("trigger-long-running-operation", {"duration": 1, "steps": 4}, "operation completed"),
        ("get-resource-links", {"count": 2}, "[Text Resource 2](demo://resource/dynamic/text/2)"),
    ],
    ids=["text", "sum", "structured", "progress", "links"],
)
def test_its_tools_answer(call, name, arguments, said):
    assert said in call(name, **arguments).text


def test_its_image_arrives(call):
    (image,) = call("get-tiny-image").files
    assert (image.name, image.mime_type) == ("get-tiny-image-2.png", "image/png")
    assert image.content.startswith(PNG)


def test_its_compressed_resource_arrives(functions, context):
    arguments = {
        "name": "a.gz",
        "data": "data:text/plain;base64,aGVsbG8=",
        "outputType": "resource",
    }
    (file,) = asyncio.run(functions["gzip-file-as-resource"].call(arguments, context)).files
    assert (file.name, file.mime_type) == ("a.gz", "application/gzip")
    assert gzip.decompress(file.content) == b"hello"


def test_wrong_arguments_are_its_own_error(call):
    with pytest.raises(ToolError, match="Invalid arguments"):
        call("get-sum", a="nine")
