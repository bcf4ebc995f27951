"""What schemathesis does to each request before it is sent, and what it looks for in each answer.

Loaded by schemathesis in its own environment: knows no Django and nothing of Amber. FUZZ_PLAN names
a JSON file: `role`, the `parties` by operation ("" for all others), what to ask `first`, and a `log`
for what was answered, a JSON line each. See https://schemathesis.readthedocs.io/en/stable/guides/extending/.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.core.parameters import ParameterLocation

PLAN: dict[str, Any] = json.loads(Path(os.environ["FUZZ_PLAN"]).read_text())
ROLE: str = PLAN["role"]
CSRF = "c" * 32
LEFT_AS_GENERATED = 8
"""One request in so many keeps what was generated: an id that never was is worth asking for, too."""

SAID_BYTES = 300

BEGUN: set[str] = set()
"""Operations that were asked something right."""

FOR_KEYS = ("/v1/", "/chat")
ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|resp_[0-9a-f]+")
OF_OPENAI = {"message", "type", "param", "code"}
OF_AMBER = {"code", "message", "fields", "retryable", "request_id", "turn_id"}


def party_of(case: Any) -> dict[str, Any]:
    found: dict[str, Any] = PLAN["parties"].get(case.operation.label) or PLAN["parties"][""]
    return found


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    party, operation = party_of(case), case.operation.label
    is_first = is_right(case) and operation not in BEGUN
    if is_first:
        BEGUN.add(operation)
        say_little(case)
        for container, said in PLAN["first"].get(operation, {}).items():
            setattr(case, container, said)
    if is_first or int(case.id.encode().hex(), 16) % LEFT_AS_GENERATED:
        put_in_place(case, party["values"])
    bear(case, party["credentials"])


def say_little(case: Any) -> None:
    """No more than must be said: what may be said is often wrong, as cursors are."""
    case.headers.clear()
    case.query = {}
    if case.method.upper() == "PATCH":
        case.body = {}


def is_right(case: Any) -> bool:
    return case.meta is None or case.meta.generation.mode.is_positive


def put_in_place(case: Any, values: dict[str, Any]) -> None:
    """Only where what was generated is meant to be right."""
    for location, container in (
        (ParameterLocation.PATH, "path_parameters"),
        (ParameterLocation.QUERY, "query"),
        (ParameterLocation.BODY, "body"),
    ):
        if case.meta is None or not case.meta.is_negative_at(location):
            setattr(case, container, with_values(getattr(case, container), values))


def with_values(node: Any, values: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        return {name: values.get(name, with_values(inner, values)) for name, inner in node.items()}
    return [with_values(inner, values) for inner in node] if isinstance(node, list) else node


def bear(case: Any, credentials: dict[str, str]) -> None:
    """A session where it counts, else the key or token there is."""
    session = credentials.get("session")
    if session and not case.operation.path.startswith(FOR_KEYS):
        case.cookies = {"sessionid": session, "csrftoken": CSRF}
        case.headers["X-CSRFToken"] = CSRF
        return
    for scheme in ("apiKey", "guestToken"):
        if scheme in credentials:
            case.headers["Authorization"] = f"Bearer {credentials[scheme]}"


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    with Path(PLAN["log"]).open("a") as log:
        said = response.content[:SAID_BYTES].decode(errors="replace")
        asked = f"{case.method.upper()} {case.path}"  # not always the operation: OPTIONS, TRACE
        log.write(json.dumps([asked, response.status_code, said]) + "\n")


def body_of(response: Any) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        return None


@schemathesis.check
def errors_have_their_form(ctx: Any, response: Any, case: Any) -> None:
    """OpenAI's below /v1/, Amber's elsewhere; REST framework's own nowhere."""
    if response.status_code < 400:
        return
    told = body_of(response)
    assert isinstance(told, dict) and set(told) == {"error"}, "an error in a form of its own"
    if case.operation.path.startswith("/v1/"):
        assert set(told["error"]) == OF_OPENAI, "an error that is not OpenAI's"
    else:
        assert {"code", "message", "request_id"} <= set(told["error"]) <= OF_AMBER


def ids_in(said: Any) -> set[str]:
    return set(ID.findall(json.dumps(said, default=str)))


@schemathesis.check
def strangers_get_nothing(ctx: Any, response: Any, case: Any) -> None:
    """Rivals never succeed with somebody else's row, nor read of one; the unknown never succeed."""
    if ROLE == "nobody":
        assert response.status_code >= 400, "done for nobody"
    if ROLE != "rival" or case.method.upper() == "OPTIONS":
        return
    client_tools = ids_in(party_of(case)["values"])
    named = ids_in([case.path_parameters, case.body]) & client_tools
    assert not named or response.status_code >= 400, "done with another tenant's row"
    asked = named | ids_in(case.query)
    read = set(ID.findall(response.content.decode(errors="replace"))) & client_tools - asked
    assert not read, f"tells of another tenant's rows: {read}"
