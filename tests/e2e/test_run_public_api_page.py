"""The programs of docs/public-api.md, run as pasted: nothing is replaced but Amber's address and the key.

Those that need a package of npm or of LangChain are in tests/clients.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from public_api.webhooks.signing import signature
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).resolve().parents[2] / "docs/public-api.md"
ADDRESS, KEY = "https://amber.example.com", "amb_live_…"
RUN_SECONDS = 120
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def programs(language: str, having: str) -> list[str]:
    """The page's blocks in this language that say this, in order."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block for block in found if having in block]


def said_by(argv: list[str], **environ: str) -> str:
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        argv,
        env={**bare, **environ},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-3_000:]
    return done.stdout


@dataclass(frozen=True)
class Reader:
    """Somebody with the assistant that the page talks to; it is public."""

    caller: Client
    assistant_id: str

    def of(self, program: str) -> str:
        address = f"http://127.0.0.1:{self.caller.port}"
        return program.replace(ADDRESS, address).replace(KEY, self.caller.key)


@pytest.fixture(scope="session")
def reader(running_platform: Platform) -> Reader:
    caller = running_platform.new_person("paige", "Pages")
    made = caller.post(
        "assistants/", {"name": "Helper", "slug": "helper", "model": "fake-model", "public": True}
    )
    assert made.status == 201, made
    return Reader(caller, made.body["id"])


def test_openais_client_for_python(reader):
    """One after the other, as a reader would: the second program goes on with the first one's client."""
    completions, responses = programs("python", "client.")
    said = said_by([sys.executable, "-c", reader.of(f"{completions}\nprint()\n{responses}")])
    assert said.replace("\n", "") == answer_text(64) * 3


@needs_curl
def test_curl(reader):
    completed, proxied, visited = programs("sh", "curl")
    environ = {
        "AMBER": f"http://127.0.0.1:{reader.caller.port}",
        "AMBER_KEY": reader.caller.key,
        "ASSISTANT": reader.assistant_id,
    }
    answer = json.loads(said_by(["bash", "-euc", completed], **environ))
    assert answer["choices"][0]["message"]["content"]
    answer = json.loads(said_by(["bash", "-euc", proxied], **environ))
    assert answer["messages"][-1]["role"] == "assistant"
    assert "event: turn.completed" in said_by(["bash", "-euc", visited], **environ)


CHECKS = """
const body = Buffer.from(process.argv[2]);
const header = process.argv[3];
console.log(JSON.stringify([
  isFromAmber("new", header, body),
  isFromAmber("old", header, body),
  isFromAmber("another", header, body),
  isFromAmber("new", header, Buffer.from("{}")),
  isFromAmber("new", "t=1,v1=00", body),
]));
"""


@needs_node
def test_the_signature_in_javascript(tmp_path):
    (program,) = programs("js", "function isFromAmber")
    path = tmp_path / "check.mjs"
    path.write_text(program + CHECKS)
    body = '{"id": "é"}'
    header = signature(["new", "old"], body.encode(), at=int(time.time()))
    said = said_by(["node", str(path), body, header])
    assert json.loads(said) == [True, True, False, False, False]
