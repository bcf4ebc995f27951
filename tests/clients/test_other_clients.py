"""Clients that people use already, against /v1 of a real platform: they list, ask, stream, have
their own tool called, raise what they should, and end the turn when they leave.

Each client is a script of its own beside this file, run once; it prints what it saw, and the tests
here judge that. What a script does not tell its client cannot do. Clients that are not installed
are skipped.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amber.processes import wait_until
from public_api.tests.completions import png_url
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform
from tests.fakes.answers import answer_text
from tests.fixtures.provider import RunningProvider

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSTALLED = ROOT / "var/clients"
CLIENT_SECONDS = 120

ARGUMENTS = base64.urlsafe_b64encode(b'{"city": "Oslo"}').decode().rstrip("=")
MARKERS = {
    "words": "[[fake tokens=6]]",
    "pieces": "[[fake tokens=6 itl=200]]",  # what comes at once is told at once
    "call": f"[[fake call=weather args={ARGUMENTS} tokens=6]]",
    "slow": "[[fake tokens=400 itl=50]]",
    "image": png_url(),
}
SCRIPTS = {
    "openai-node": ("node", "openai_node.mjs"),
    "ai-sdk": ("node", "ai_sdk.mjs"),
    "langchain-openai": (str(INSTALLED / "langchain-openai/bin/python"), "langchain_client.py"),
    "litellm": (str(INSTALLED / "litellm/bin/python"), "litellm_client.py"),
    "llm": (str(INSTALLED / "llm/bin/python"), "llm_client.py"),
}
FAILURES = {
    "no_model": ("NotFoundError", 404),
    "bad_key": ("AuthenticationError", 401),
    "not_allowed": ("PermissionDeniedError", 403),
    "bad_request": ("BadRequestError", 400),
    "too_long": ("BadRequestError", 400),
    "busy": ("RateLimitError", 429),
    "broken": ("InternalServerError", 502),
}
OF_LITELLM = {
    "not_allowed": ("APIError", 403),  # it has no kind of its own for what OpenAI answers so
    "too_long": ("ContextWindowExceededError", 400),
    "broken": ("BadGatewayError", 502),
}
VOCABULARY = "cl100k_base.tiktoken"

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Run:
    """One client's run: what it says it saw, and how many turns it broke off."""

    client: str
    seen: dict[str, Any]
    aborted_before: int

    def __getitem__(self, fact: str) -> Any:
        if fact not in self.seen:
            pytest.skip(f"{self.client} does not do this")
        return self.seen[fact]


def reason_to_skip(client: str) -> str:
    """Why this client cannot be run here; empty if it can."""
    program, script = SCRIPTS[client]
    if shutil.which(program) is None:
        return f"{program} is not there; `make test-clients` installs what it can"
    marks = {"openai_node.mjs": "openai", "ai_sdk.mjs": "@ai-sdk/openai"}
    if script in marks and not (INSTALLED / "node/node_modules" / marks[script]).exists():
        return f"the npm package {marks[script]} is not installed"
    if program != "node" and not (INSTALLED / client / "installed").exists():
        return f"{client} could not be installed"
    return ""


@pytest.fixture(scope="module")
def other_key(running_platform: Platform) -> str:
    """One that may not use /v1."""
    rita = running_platform.new_person("rita", "Acme")
    sql = "UPDATE accounts_apikey SET scopes = '{read}' WHERE prefix = %s RETURNING id"
    assert len(running_platform.query(sql, rita.key[:13])) == 1
    return rita.key


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of tiktoken's, which would fetch the vocabulary otherwise; named as it names it."""
    cache = tmp_path_factory.mktemp("tiktoken")
    url = f"https://openaipublic.blob.core.windows.net/encodings/{VOCABULARY}"
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    shutil.copy(ROOT / "engine/text/encodings" / VOCABULARY, cache / name)
    return cache


@pytest.fixture(scope="module", params=list(SCRIPTS))
def run(
    request: pytest.FixtureRequest,
    running_platform: Platform,
    ann: Client,
    other_key: str,
    vocabularies: Path,
    fake_provider: RunningProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    client: str = request.param
    if reason := reason_to_skip(client):
        pytest.skip(reason)
    program, script = SCRIPTS[client]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path_factory.mktemp("home")),
        "LLM_USER_PATH": str(tmp_path_factory.mktemp("llm")),
        "CLIENTS_NODE": str(INSTALLED / "node"),
        "CLIENT": client,
        "MARKERS": json.dumps(MARKERS),
        "AMBER_URL": f"http://127.0.0.1:{running_platform.port}/v1",
        "AMBER_KEY": ann.key,
        "AMBER_OTHER_KEY": other_key,
        "TIKTOKEN_CACHE_DIR": str(vocabularies),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches its prices
    }
    aborted = fake_provider.stats()["aborted"]
    done = subprocess.run(
        [program, str(HERE / script)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return Run(client, json.loads(done.stdout.splitlines()[-1]), aborted)


def test_lists_models(run):
    assert {"fake-model", "fake-echo"} <= {name.removeprefix("openai/") for name in run["models"]}


def test_answers_whole(run):
    assert run["whole"] == answer_text(6)


def test_streams_what_it_answers_whole(run):
    assert run["streamed"] == answer_text(6)


def test_streams_in_pieces(run):
    assert run["pieces"] > 1


def test_calls_the_clients_tool_and_goes_on(run, fake_provider):
    assert run["after_call"] == answer_text(6)
    (last,) = fake_provider.requests(f"Rain in Oslo for {run.client}")
    assert last["messages"][-1]["role"] == "tool"


def test_answers_in_the_form_of_responses(run):
    assert run["response"] == answer_text(6)


def test_lists_what_a_response_was_asked(run):
    assert run["input_items"] == [MARKERS["words"]]


def test_shows_an_image_to_the_model(run):
    text, image = json.loads(run["image"])[-1]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["type"] == "image_url"


def test_embeds(run):
    assert run["dimensions"] == 64


def test_embeds_token_ids_as_the_text_they_stand_for(run):
    assert run["token_ids_differ_by"] < 1e-6


@pytest.mark.parametrize("failure", FAILURES)
def test_failures_are_the_clients_own_errors(run, failure):
    name, status = FAILURES[failure]
    if run.client == "litellm":
        name, status = OF_LITELLM.get(failure, (name, status))
    if run.client == "ai-sdk":
        name = "AI_APICallError"  # its one kind for all
    assert run["errors"][failure] == [name, status]


def test_failures_are_told(run):
    assert "absent" in run["said_of_no_model"]


def test_hanging_up_ends_the_turn(run, fake_provider):
    hung_up = run.aborted_before + 1
    assert wait_until(lambda: fake_provider.stats()["aborted"] == hung_up, timeout_seconds=30)
