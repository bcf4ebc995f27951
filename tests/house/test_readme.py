"""The README's promises, kept by the real platform: its curl blocks work as pasted, so do the
examples. Starts `manage.py up` on a folder of its own, with the offline model."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amber.processes import wait_until
from tests.fixtures.ports import free_port
from tests.installation.test_up import Up, manage

ROOT = Path(__file__).resolve().parents[2]
README_ADDRESS = "http://127.0.0.1:8000"
SERVICE_PORT = "9000"
"""Of the tool service in examples/tools/README.md."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@pytest.fixture(scope="module")
def environ() -> Iterator[dict[str, str]]:
    """Of commands in a second terminal, while `make run` runs in the first."""
    folder = Path(tempfile.mkdtemp(prefix="amber-readme-"))
    folder.chmod(0o711)
    port, service_port = str(free_port()), str(free_port())
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    bare |= {
        "AMBER_VAR_DIR": str(folder / "var"),
        "AMBER_PORT": port,
        "AMBER_TOOL_ALLOWED_HOSTS": f"127.0.0.1:{service_port}",
    }
    try:
        with Up(bare, folder / "log") as up:
            up.wait_for("Amber is ready")
            yield bare
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def curl_blocks() -> list[str]:
    text = (ROOT / "README.md").read_text()
    _, _, rest = text.partition("\n## With curl\n")
    return shell_blocks(rest.partition("\n## ")[0])


def shown_answer(paragraph: str) -> str:
    """What README shows of the answer, in the first plain block after this paragraph."""
    _, _, rest = (ROOT / "README.md").read_text().partition(f"\n{paragraph}")
    shown = re.search(r"\n```\n(.*?)\n```\n", rest.partition("is:\n")[2], re.DOTALL)
    assert shown is not None
    return shown[1]


def shell_blocks(text: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def run_blocks(blocks: list[str], environ: dict[str, str]) -> list[str]:
    """What each block says. They are one session, and leave nothing running."""
    script = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    script += "".join(f"{block}\necho; echo '==='\n" for block in blocks)
    script = script.replace(README_ADDRESS, f"http://127.0.0.1:{environ['AMBER_PORT']}")
    script = script.replace(".venv/bin/python", sys.executable)
    said = run(["bash", "-c", script], environ)
    assert '"error":{' not in said, said
    return said.split("===\n")[:-1]


def run(argv: list[str], environ: dict[str, str]) -> str:
    done = subprocess.run(
        argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_curl_blocks_work_as_pasted(environ):
    said = run_blocks(curl_blocks(), environ)
    _, who, _, asked, watched, stored, again, library, remembered, completed = said

    assert '"email":"you@example.com"' in who
    assert '"name":"Demo"' in who
    assert '"ok":true,"content":"42"' in asked
    assert asked.count("event: turn.completed") == 1
    from_the_start, _, resumed = watched.partition("event: turn.completed")
    assert from_the_start.startswith("id: 1\n")
    assert re.search(r"^id: \d+$", resumed, re.MULTILINE)[0] == "id: 3"  # type: ignore[index]
    assert re.search(r'"tools":\[[^]]*"calculate"[^]]*"current_time"', stored)
    assert again.count("event: turn.completed") == 1
    assert '"text_rank":1' in library
    assert '"answer":' in library
    assert "valve on its left side" in library
    assert '"content":"my dentist is Ana Meyer"' in remembered
    assert remembered.strip().endswith(shown_answer("Let an assistant remember"))
    assert '"object":"chat.completion"' in completed
    assert "valve on its left side" in completed


def test_the_first_assistant_is_made_as_its_page_says(environ):
    blocks = shell_blocks((ROOT / "docs/first-assistant.md").read_text())

    _, _, answered, published = run_blocks(blocks, environ)

    assert "valve on its left side" in answered
    assert '"public":true' in published
    line = published.strip().splitlines()[-1]
    assert re.search(
        r'<script src="http[^"]+" data-assistant="[0-9a-f-]{36}" async></script>', line
    )


def test_the_docs_are_served_soon_after_the_start(environ):
    address = f"http://127.0.0.1:{environ['AMBER_PORT']}/docs/first-assistant/"

    def are_there() -> bool:
        code = run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", address], environ)
        assert code in ("200", "503"), code
        return code == "200"

    assert wait_until(are_there, timeout_seconds=120)


def test_examples_answer_and_resume(environ):
    key = json.loads(
        manage(
            environ,
            *("create_account", "--email", "eve@example.com"),
            *("--organization", "Demo", "--api-key"),
        ).stdout
    )["api_key"]
    address = f"http://127.0.0.1:{environ['AMBER_PORT']}"
    terminal = {"PATH": os.environ["PATH"], "AMBER_URL": address, "AMBER_KEY": key}
    question = '/calculate {"expression": "6 * 7"}'

    resumed = run([sys.executable, "examples/ask.py", question, "--drop-after", "1"], terminal)
    with_curl = run(["sh", "examples/ask.sh", question], terminal)

    assert resumed.count("calculate answered:\n42") == 1
    assert "turn.completed" in resumed
    assert "event: turn.completed" in with_curl


@pytest.mark.parametrize(
    "example", [[sys.executable, "examples/ask.py"], ["sh", "examples/ask.sh"]]
)
def test_examples_say_in_a_line_that_nobody_answers(example):
    nobody = {"PATH": os.environ["PATH"], "AMBER_KEY": "k"}
    nobody["AMBER_URL"] = f"http://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [*example, "Hi"], cwd=ROOT, env=nobody, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert re.fullmatch(r"[^\n]*127\.0\.0\.1[^\n]*\n+", done.stderr), done.stderr


def test_the_tool_service_is_attached_as_its_page_says(environ):
    page = (ROOT / "examples/tools/README.md").read_text()
    port = environ["AMBER_TOOL_ALLOWED_HOSTS"].rpartition(":")[2]
    blocks = [block.replace(SERVICE_PORT, port) for block in shell_blocks(page)]
    blocks[-2] = blocks[-2].replace("speech.wav", "$AMBER_VAR_DIR/speech.wav")

    said = run_blocks(blocks, environ)

    manifest, _, tool, tried, _, asked, both, spoken, log = said
    assert "cal_plus" in manifest
    assert '"function_names":["cal_plus","cal_minus","current_weather","text_to_speech"]' in tool
    assert '"has_api_key":true' in tool
    assert '"content":"3.0"' in tried
    assert "a-key-of-your-own" not in tool + tried
    assert '"ok":true,"content":"15.0"' in asked
    assert '"content":"15.0"' in both
    assert '"content":"3.0"' in both
    assert "Paris: " in both
    assert "Tokyo: " in both
    assert "[file: speech.wav]" in spoken
    audio = Path(environ["AMBER_VAR_DIR"], "speech.wav").read_bytes()
    assert audio[:4] + audio[8:12] == b"RIFFWAVE"
    assert log.count('"outcome":"ok"') == 6
    assert '"is_test":true' in log
