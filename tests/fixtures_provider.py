"""The fake provider as a pytest fixture: a process of its own on 127.0.0.1 and a free port.

A conftest.py takes it with `from tests.fixtures_provider import fake_provider`.
"""

import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20


@dataclass(frozen=True, slots=True)
class RunningProvider:
    """`base_url` ends with /v1, as clients want it."""

    base_url: str
    api_key: str = "fake-key"

    def stats(self) -> dict[str, int]:
        return dict(self._get("/stats"))

    def requests(self, contains: str = "") -> list[dict[str, Any]]:
        """The last request bodies that hold this text, oldest first."""
        return list(self._get("/requests?" + urllib.parse.urlencode({"contains": contains})))

    def _get(self, path: str) -> Any:
        url = self.base_url.removesuffix("/v1") + path
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=5) as answer:
            return json.load(answer)


@pytest.fixture(scope="session")
def fake_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    ready_file = tmp_path_factory.mktemp("provider") / "url"
    command = [sys.executable, "-m", "tests.fake_provider", "--port", "0"]
    process = subprocess.Popen([*command, "--ready-file", str(ready_file)], cwd=ROOT)
    try:
        yield RunningProvider(_wait_for(ready_file, process))
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(ready_file: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if ready_file.exists():
            return ready_file.read_text()
        time.sleep(0.02)
    raise RuntimeError(f"the fake provider did not start (exit code {process.poll()})")
