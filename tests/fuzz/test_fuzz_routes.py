"""Schemathesis asks every operation of the OpenAPI document of a real platform what nobody thought
of, as several people. No answer may be a server's error, or have a status, a type or a shape that
the document does not name; nor may anybody get at what is another's.

For FUZZ_SECONDS in all. The seed is fixed, so a run can be repeated; what time allows varies.
"""

import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform, started_platform
from tests.fixtures.provider import RunningProvider
from tests.fuzz.danger import is_apart
from tests.fuzz.first_requests import FIRST
from tests.fuzz.furnish import furnish
from tests.rest.routes import METHODS
from tools.tests.mcp.oauth_service import serving_oauth
from tools.tests.services import say_json
from tools.tests.tool_service import function, serving

COMMAND = Path(__file__).resolve().parent.parent.parent / "var/clients/schemathesis/bin/st"
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "errors_have_their_form",
    "strangers_get_nothing",
]
CHECKS_OF_METHODS = ["unsupported_method", "allow_header_conformance"]
ROLES_OF_ALL_METHODS = {"session", "guestToken", "rival"}
"""Keys are refused some methods that there are; nobody is 401 by any."""

SHARES = {"session": 0.35, "apiKey": 0.3, "guestToken": 0.1, "rival": 0.2, "nobody": 0.05}
"""Of the time, by role: a credential of the document, or somebody who should get nothing."""

WITHOUT_RATES = {
    f"AMBER_RATE_{who}": "0" for who in ("KEY", "USER", "GUEST", "ORGANIZATION", "GUEST_TOKEN")
}
EACH_ONCE = ("--phases", "fuzzing", "--mode", "positive", "--max-examples", "3")
AT_LENGTH = ("--phases", "examples,coverage,fuzzing")
TRACE_CHARS = 1_500
TOO_SHORT = (
    "each operation was asked once, and no time was left to ask more. Set FUZZ_SECONDS to more."
)


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(0),  # FUZZ_SECONDS says how long it takes
    pytest.mark.skipif(not COMMAND.exists(), reason="schemathesis could not be installed"),
]


@dataclass
class Stage:
    """A platform with its document, its people, and what was answered so far, by operation
    and status."""

    platform: Platform
    document: dict[str, Any]
    cast: dict[str, Any]
    answered: dict[str, dict[int, str]]
    cases: int = 0

    def note(self, log: Path) -> None:
        for line in log.read_text().splitlines():
            operation, status, said = json.loads(line)
            self.answered.setdefault(operation, {})[status] = said
            self.cases += 1
        log.unlink()

    @property
    def operations(self) -> list[str]:
        return operations_of(self.document)

    def document_for(self, role: str) -> dict[str, Any]:
        """What the role may try. Without what is said of credentials, which the hooks bring, and of
        a stream's text, which schemathesis would hold each event against."""
        paths: dict[str, dict[str, Any]] = {}
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method in METHODS and is_for(role, operation):
                    paths.setdefault(path, {})[method] = without_streams(operation)
        components = self.document["components"] | {"securitySchemes": {}}
        return self.document | {"paths": paths, "components": components}

    def plan_for(self, role: str, log: Path) -> dict[str, Any]:
        """See tests/fuzz/hooks.py."""
        main = self.cast["guest" if role == "guestToken" else "main"]
        parties = {"": main, **self.cast["apart"]}
        plan = {operation: as_role(role, party) for operation, party in parties.items()}
        if role == "rival":
            rival = {"credentials": self.cast["rival"]["credentials"]}
            plan = {operation: party | rival for operation, party in plan.items()}
        return {"role": role, "parties": plan, "first": FIRST, "log": str(log)}


def operations_of(document: dict[str, Any]) -> list[str]:
    return [
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method in item
        if method in METHODS
    ]


def without_streams(operation: dict[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(operation)
    plain.pop("security", None)
    for response in plain["responses"].values():
        if stream := response.get("content", {}).get("text/event-stream"):
            stream.pop("schema", None)
    return plain


def is_for(role: str, operation: dict[str, Any]) -> bool:
    schemes = {name for wanted in operation.get("security", ()) for name in wanted}
    if role == "nobody":
        return bool(schemes)
    if role == "rival":
        return bool(schemes & {"session", "apiKey"})
    return role in schemes or (role == "guestToken" and not schemes)


def as_role(role: str, party: dict[str, Any]) -> dict[str, Any]:
    credentials = {name: told for name, told in party["credentials"].items() if name == role}
    return party | {"credentials": credentials}


@pytest.fixture(scope="module")
def stage(
    fake_provider: RunningProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    with (
        started_platform(fake_provider.base_url, **WITHOUT_RATES) as platform,
        serving() as tool,
        serving_oauth() as protected,
    ):
        tool.route("/call", say_json({"content": "done"}))  # whatever it is asked
        tool.functions = [function(), function("send", requires_approval=True)]
        document = Client(platform.port).get("/api/schema/?format=json").body
        apart = tmp_path_factory.mktemp("cast") / "apart.json"
        apart.write_text(json.dumps([o for o in operations_of(document) if is_apart(o)]))
        cast = json.loads(platform.command("-m", "tests.fuzz", str(apart)))
        furnish(platform, cast, tool, f"{protected.root}/mcp")
        yield Stage(platform, document, cast, {})


@pytest.mark.parametrize("role", SHARES)
def test_answers_as_the_document_says(stage, role, tmp_path):
    document, plan, log = (tmp_path / name for name in ("document.json", "plan.json", "log"))
    document.write_text(json.dumps(stage.document_for(role)))
    plan.write_text(json.dumps(stage.plan_for(role, log)))
    checks = CHECKS + (CHECKS_OF_METHODS if role in ROLES_OF_ALL_METHODS else [])
    ends_at = time.monotonic() + float(os.environ["FUZZ_SECONDS"]) * SHARES[role]
    faults = ask(stage, document, plan, checks, EACH_ONCE)
    seconds = round(ends_at - time.monotonic())
    if seconds > 0:
        extent = [*AT_LENGTH, "--max-time", str(seconds)]
        faults += ask(stage, document, plan, checks, extent)
    else:
        sys.stdout.write(f"{role}: {TOO_SHORT}\n")
    assert not faults, faults


def ask(stage: Stage, document: Path, plan: Path, checks: list[str], extent: Sequence[str]) -> str:
    """What schemathesis says of what it found wrong; nothing if all was well."""
    argv = [str(COMMAND), "run", str(document), "--url", f"http://127.0.0.1:{stage.platform.port}"]
    argv += ["--seed", "1", "--no-shrink", "--no-color", "--continue-on-failure"]
    argv += ["--request-timeout", "30", "--warnings", "off", *extent]
    argv += ["--checks", ",".join(checks)]
    environ = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "FUZZ_PLAN": str(plan)}
    environ["PYTHONPATH"] = str(COMMAND.parents[4])
    done = subprocess.run(
        argv, cwd=plan.parent, env=environ, capture_output=True, text=True, check=False
    )
    log = plan.parent / "log"
    assert log.exists(), done.stdout + done.stderr
    stage.note(log)
    return "" if done.returncode == 0 else done.stdout[-60_000:] + done.stderr[-2_000:]


def test_no_process_leaves_a_trace(stage):
    said = stage.platform.log.read_text(errors="replace").splitlines()
    traces = {line[-TRACE_CHARS:] for line in said if "Traceback" in line}
    assert not traces, "\n".join(sorted(traces))


def test_every_operation_was_done(stage):
    """Else it was only refused, and what it answers is not known."""
    done = {o for o, seen in stage.answered.items() if any(s < 300 for s in seen)}
    missed = {o: stage.answered.get(o) for o in stage.operations if o not in done}
    assert not missed, json.dumps(missed, indent=1)
    sys.stdout.write(f"{stage.cases} requests; all {len(stage.operations)} operations were done\n")
