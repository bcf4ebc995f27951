"""Traces of real processes at a collector: one trace from a caller's `traceparent` to the end of the answer,
also across a killed worker; no texts, unless the organization allows them.
"""

import base64
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from amber.lib.tracing import names
from amber.lib.tracing.exporting import FLUSH_SECONDS
from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Asked, Client
from tests.e2e.kit.platform import QUICK_LEASE, Platform, started_platform
from tests.e2e.kit.sessions import new_account, send, signed_in
from tests.fakes.collector import Collector, Found, collector
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

SECRET = "the yellow submarine leaves at noon"
ARGUMENTS = base64.urlsafe_b64encode(json.dumps({"expression": "6 * 7"}).encode()).decode()
CALLS = f"[[fake call=calculate args={ARGUMENTS.rstrip('=')} tokens=20 itl=10]]"
CONTENT = {
    *(names.AGENT_NAME, names.INPUT_MESSAGES, names.OUTPUT_MESSAGES, names.RETRIEVAL_QUERY),
    *(names.TOOL_ARGUMENTS, names.TOOL_RESULT),
}
LONG = "Tell me. [[fake tokens=80 itl=40]]"


@pytest.fixture(scope="module")
def found() -> Iterator[Collector]:
    with collector() as collecting:
        yield collecting


@pytest.fixture(scope="module")
def running(fake_provider: RunningProvider, found: Collector) -> Iterator[Platform]:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": found.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20collector-key",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "AMBER_TRACE_PROPAGATE": "providers",
        **QUICK_LEASE,
    }
    with started_platform(fake_provider.base_url, **settings) as platform:
        yield platform


@pytest.fixture
def traced(running: Platform) -> Iterator[Platform]:
    running.restore()
    with leaves_no_trace(running):
        yield running


@pytest.fixture(scope="module")
def tess(running: Platform) -> Client:
    return running.new_person("tess", "Tracers")


def new_caller(*, is_sampled: bool = True) -> tuple[str, str, str]:
    """A caller's trace id, span id and `traceparent`."""
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    return trace_id, span_id, f"00-{trace_id}-{span_id}-0{int(is_sampled)}"


def ask(who: Client, text: str, traceparent: str, assistant_id: str = "") -> Asked:
    made = who.post("chats/", {"assistant_id": assistant_id or who.assistant("fake-model")})
    posted = who.post(
        f"chats/{made.body['id']}/messages/",
        {"content": text},
        headers={"traceparent": traceparent},
    )
    return Asked(made.body["id"], posted.body["message"]["id"], posted.body["turn"]["id"])


def ended_trace(found: Collector, who: Client, asked: Asked, trace_id: str) -> list[Found]:
    """All spans of a turn's trace, when its last attempt is there."""
    attempts = who.ended(asked.turn_id)["attempts"]

    def whole() -> list[Found]:
        its = found.of_trace(trace_id)
        done = {s.attributes[names.ATTEMPT] for s in its if s.name == names.INVOKE_AGENT}
        return its if attempts in done else []

    spans: list[Found] = found.wait_for(whole)
    return spans


def reader(traced: Platform, who: Client) -> str:
    """An assistant with a library in which the question is answered."""
    library = who.post("libraries/", {"name": "Boats", "embedding_model": "fake-embedding"}).body
    text = f"Boats. {SECRET}, from the harbour of Liverpool."
    document = who.post(f"libraries/{library['id']}/documents/", {"name": "b.txt", "text": text})
    traced.wait_for(
        lambda: who.get(f"documents/{document.body['id']}/").body["status"] == "ready", "document"
    )
    body = {"name": "Reader", "model": "fake-model", "library_id": library["id"]}
    return str(who.post("assistants/", body).body["id"])


def test_one_trace_from_the_caller_to_the_answer_without_a_word_of_it(
    traced, tess, found, fake_provider
):
    trace_id, caller_id, traceparent = new_caller()
    asked = ask(tess, f"When does {SECRET}? {CALLS}", traceparent, reader(traced, tess))
    spans = ended_trace(found, tess, asked, trace_id)
    by_name: dict[str, list[Found]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)

    [request] = by_name["POST /api/v1/chats/<uuid:chat_id>/messages/"]
    assert (request.service, request.kind, request.parent_id) == ("amber-web", "server", caller_id)
    assert request.attributes[names.HTTP_STATUS] == 201
    [stored] = by_name[names.STORE_QUESTION]
    [sent] = by_name["send chat"]
    assert {stored.parent_id, sent.parent_id} <= {request.span_id, stored.span_id}
    [attempt] = by_name[names.INVOKE_AGENT]
    assert (attempt.service, attempt.parent_id) == ("amber-chat", stored.span_id)
    assert attempt.attributes[names.TURN_STATUS] == "completed"
    assert attempt.attributes[names.TURN_ID] == asked.turn_id
    assert attempt.links == ()
    [tool] = by_name["execute_tool calculate"]
    chats = sorted(by_name["chat fake-model"], key=lambda span: span.began_ns)
    assert {each.parent_id for each in (tool, *chats)} == {attempt.span_id}
    assert [each.attributes[names.FINISH_REASONS] for each in chats] == [["tool_calls"], ["stop"]]
    assert chats[1].attributes[names.OUTPUT_TOKENS] == 20
    assert chats[1].attributes[names.TIME_TO_FIRST_CHUNK] > 0
    assert chats[1].kind == "client"
    assert {names.RETRIEVAL, "embeddings fake-embedding", names.GATHER} <= set(by_name)
    known = {span.span_id for span in spans} | {caller_id}
    assert {span.parent_id for span in spans} <= known
    assert not any(span.is_error for span in spans)

    assert not any(CONTENT & set(span.attributes) for span in spans)
    assert "submarine" not in repr(found.spans)
    assert found.headers[-1]["authorization"] == "Bearer collector-key"
    line = next(
        each
        for each in map(json.loads, filter(_is_json, traced.log.read_text().splitlines()))
        if each.get("trace_id") == trace_id
    )
    assert line["event"] == "request"


def test_a_killed_workers_attempt_is_in_the_same_trace_and_the_next_one_links_to_it(
    traced, tess, found
):
    trace_id, _, traceparent = new_caller()
    asked = ask(tess, LONG, traceparent)
    tess.watch(asked).wait_for_text(50)
    traced.chat_worker.kill()
    traced.start_member("chat")
    spans = ended_trace(found, tess, asked, trace_id)
    attempts = [span for span in spans if span.name == names.INVOKE_AGENT]
    lost, second = sorted(attempts, key=lambda span: span.attributes[names.ATTEMPT])
    assert second.links == (lost.span_id,)
    assert (lost.is_error, lost.attributes[names.ERROR_TYPE]) == (True, "worker_lost")
    assert second.attributes[names.TURN_STATUS] == "completed"
    assert lost.parent_id == second.parent_id
    assert lost.began_ns < second.began_ns


def test_texts_are_in_spans_once_the_organization_allows_them(traced, found):
    with signed_in(traced, new_account(traced, "owen")) as http:
        organization = http.get("/api/v1/me/").json()["organization"]["id"]
        address = f"/api/v1/organizations/{organization}/"
        assert send(http, "PATCH", address, {"trace_content": True})["trace_content"] is True
        key = send(http, "POST", "/api/v1/api-keys/", {"name": "traces"})["key"]
        acts = http.get("/api/v1/audit/").json()["results"]
    changed = next(act for act in acts if act["action"] == "organization.changed")
    assert changed["detail"]["trace_content"] is True
    owen = Client(traced.port, key)
    trace_id, _, traceparent = new_caller()
    asked = ask(owen, f"Say that {SECRET}. {CALLS}", traceparent)
    spans = {span.name: span for span in ended_trace(found, owen, asked, trace_id)}
    chat = spans["chat fake-model"].attributes
    assert SECRET in chat[names.INPUT_MESSAGES]
    [answer] = json.loads(chat[names.OUTPUT_MESSAGES])
    assert answer["role"] == "assistant"
    tool = spans["execute_tool calculate"].attributes
    assert json.loads(tool[names.TOOL_ARGUMENTS]) == {"expression": "6 * 7"}
    assert "42" in tool[names.TOOL_RESULT]


def test_what_the_operator_decides_holds_for_callers_too(traced, tess, found):
    """A ratio of nothing: no caller can have its requests recorded, and workers keep to that."""
    before = len(found.spans)
    sampler = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}
    traced.stop_member(traced.web)
    traced.start_web(traced.port, **sampler)
    trace_id, _, traceparent = new_caller()
    asked = ask(tess, "Briefly. [[fake tokens=3]]", traceparent)
    tess.ended(asked.turn_id)
    traced.stop_member(traced.chat_worker)  # it sends its last spans
    assert found.of_trace(trace_id) == []
    assert len(found.spans) >= before


def test_nobody_waits_for_a_collector_that_hangs(traced, tess, found):
    found.is_hanging = True
    try:
        asked = ask(tess, "Briefly. [[fake tokens=3]]", new_caller()[2])
        assert tess.ended(asked.turn_id)["status"] == "completed"
        worker = traced.chat_worker
        traced.stop_member(worker)
        assert worker.process.returncode == 0
        assert FLUSH_SECONDS < 10
    finally:
        found.is_hanging = False
        found.let_go.set()


def _is_json(line: str) -> Any:
    return line.startswith("{")
