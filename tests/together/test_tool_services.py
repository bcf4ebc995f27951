"""The tool services that docs/tools.md and examples/ show keep to the protocol: found, called, and
asked wrongly, in each language."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from amber.processes import wait_until
from tests.fixtures.ports import free_port
from tools.calling.arguments import check_arguments
from tools.discovery.source import DiscoverySource
from tools.protocol import ToolContext, ToolError, ToolOutput
from tools.source import Connection, DiscoveryError

ROOT = Path(__file__).resolve().parents[2]
KEY = "a-key-of-your-own"


@dataclass
class Service:
    url: str

    @property
    def connection(self) -> Connection:
        return Connection(self.url, api_key=KEY, name="Example")

    def call(self, function: str, arguments: Any, *, call_id: str = "") -> ToolOutput:
        """As a turn does it; each call has a key of its own unless it is given."""
        found = asyncio.run(DiscoverySource().discover(self.connection))
        functions = {
            each.spec.name: each
            for each in DiscoverySource().functions(self.connection, found.data)
        }
        check_arguments(arguments, functions[function].spec.parameters)
        context = ToolContext(organization_id=UUID(int=1), call_id=call_id)
        return asyncio.run(functions[function].call(arguments, context))


def node_service(folder: Path) -> list[str]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (code,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs/tools.md").read_text(), re.DOTALL)
    written = folder / "service.mjs"
    written.write_text(code)
    return [node, str(written)]


def python_service(port: int) -> list[str]:
    return [sys.executable, str(ROOT / "examples/tools/service.py"), "--port", str(port)]


@pytest.fixture(scope="module", params=["python", "node"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    port = free_port()
    if request.param == "node":
        argv = node_service(tmp_path_factory.mktemp("node"))
    else:
        argv = python_service(port)
    environ = {**os.environ, "AMBER_TOOL_KEY": KEY, "PORT": str(port)}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, env=environ, stdout=quiet, stderr=quiet)
    try:
        assert wait_until(lambda: _answers(port), timeout_seconds=20)
        yield port
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
def service(running: int, settings: Any) -> Service:
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{running}"]
    return Service(f"http://127.0.0.1:{running}/")


def post(url: str, body: bytes, **headers: str) -> tuple[int, Any]:
    sent = urllib.request.Request(f"{url}call", data=body, headers=headers)
    try:
        with urllib.request.urlopen(sent, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize(
    ("function", "result"), [("cal_plus", 15.0), ("cal_minus", 3.0)], ids=["plus", "minus"]
)
def test_it_calculates(service, function, result):
    assert float(service.call(function, {"a": 9.0, "b": 6.0}).text) == result


def test_nine_plus_six_is_written_as_numbers_are(service):
    assert service.call("cal_plus", {"a": 0.5, "b": 1}).text == "1.5"


def test_a_call_that_comes_twice_is_carried_out_once(service):
    first = service.call("cal_plus", {"a": 1, "b": 1}, call_id="the same")
    assert service.call("cal_plus", {"a": 5, "b": 5}, call_id="the same") == first
    assert service.call("cal_plus", {"a": 5, "b": 5}, call_id="another") != first


def test_nobody_gets_in_without_the_key(service):
    wrong = Connection(service.url, api_key="guessed")
    with pytest.raises(DiscoveryError) as caught:
        asyncio.run(DiscoverySource().discover(wrong))
    assert "401" in (caught.value.fields or {})["api_key"][0]
    for authorization in ("", "Bearer", f"Bearer {KEY}x", f"bearer {KEY}", KEY, "Bearer \xfc"):
        body = b'{"function": "cal_plus", "arguments": {"a": 1, "b": 1}}'
        assert post(service.url, body, Authorization=authorization)[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"[" * 100_000,
        b'{"function": "constructor", "arguments": {}}',
        b'{"function": ["cal_plus"], "arguments": {"a": 1, "b": 1}}',
        b'{"function": "cal_plus"}',
        b'{"function": "cal_plus", "arguments": {"a": 1}}',
        b'{"function": "cal_plus", "arguments": null}',
        b'{"function": "cal_plus", "arguments": {"a": 1, "b": null}}',
    ],
    ids=range(11),
)
def test_what_is_no_call_is_refused_with_a_sentence(service, body):
    status, said = post(service.url, body, Authorization=f"Bearer {KEY}")
    assert 400 <= status < 500
    assert said["error"].endswith(".")


# -- Only the longer one -------------------------------------------------------------------------

only_python = pytest.mark.parametrize("running", ["python"], indirect=True)


@only_python
def test_it_knows_the_weather_of_two_cities_at_once(service):
    said = service.call("current_weather", {"cities": ["Paris", "Tokyo"]}).text
    paris, tokyo, note = said.splitlines()
    assert paris.startswith("Paris: ")
    assert tokyo.startswith("Tokyo: ")
    assert "Made up" in note
    again = service.call("current_weather", {"cities": ["paris"]}).text
    assert again.splitlines()[0] == paris.replace("Paris", "paris")


@only_python
def test_it_speaks_morse(service):
    (file,) = service.call("text_to_speech", {"text": "SOS"}).files
    assert (file.name, file.mime_type) == ("speech.wav", "audio/wav")
    assert file.content[:4] == b"RIFF"


@only_python
def test_arguments_that_do_not_fit_are_told_to_the_model(service):
    with pytest.raises(ToolError, match="cities"):
        service.call("current_weather", {"cities": []})
