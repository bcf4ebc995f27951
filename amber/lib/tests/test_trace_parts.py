"""Spans: nothing without a recorder, OpenTelemetry's with one, and a collector for which nobody waits."""

import threading
import time
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind

from amber.lib.tracing import exporting, losses, names, spans, start
from amber.lib.tracing.exporting import CallerSampler, OtlpRecorder, SpanQueue
from amber.lib.tracing.spans import Beginning

CALLER = f"00-{'0' * 31}1-{'b' * 16}-01"


class Kept(SpanExporter):
    """Keeps what is exported; refuses it while `is_away`, and waits while `is_slow`."""

    def __init__(self):
        self.spans, self.is_away = [], False
        self.stop = lambda: None
        self.go_on = threading.Event()
        self.go_on.set()

    def export(self, spans):
        self.go_on.wait(30)
        if self.is_away:
            return SpanExportResult.FAILURE
        self.spans += spans
        return SpanExportResult.SUCCESS


@pytest.fixture
def kept(monkeypatch):
    """What an exporter in place of the collector's gets, while this process records."""
    exporter = Kept()
    monkeypatch.setattr(exporting, "OTLPSpanExporter", lambda: exporter)
    recorder = OtlpRecorder("test", trusts_callers=False)
    monkeypatch.setattr(spans, "_recorder", recorder)
    exporter.stop = recorder.stop
    yield exporter
    recorder.stop()


def test_without_a_recorder_there_is_nothing():
    def plain():
        """Stand for any function."""

    assert not spans.is_on()
    assert spans.trace("part")(plain) is plain
    nothing = (spans.span("part"), spans.begin("part", {}))
    assert all(each is spans.NO_SPAN for each in nothing)
    assert spans.enter(Beginning("part", parent=CALLER)) is spans.NO_SPAN
    assert (spans.trace_parent(), spans.headers_for("tools"), spans.clock_ns()) == ("", {}, 0)
    assert spans.add_trace_id(None, "", {"event": "x"}) == {"event": "x"}


def test_parts_of_parts_are_one_trace_and_errors_tell_no_words(kept, settings):
    settings.AMBER_TRACE_PROPAGATE = ("tools",)

    @spans.trace("inner")
    def fail():
        raise ValueError("a person's words")

    with (
        spans.enter(Beginning("outer", "server", CALLER)),
        spans.span("middle", {"n": 1, "x": None}),
    ):
        line = spans.add_trace_id(None, "", {})
        assert spans.headers_for("tools") == {"traceparent": spans.trace_parent()}
        assert spans.headers_for("providers") == {}
        with pytest.raises(ValueError, match="words"):
            fail()
    kept.stop()
    by_name = {span.name: span for span in kept.spans}
    trace_id, parent_id = CALLER.split("-")[1:3]
    assert {f"{span.context.trace_id:032x}" for span in kept.spans} == {trace_id}
    assert line == {"trace_id": trace_id}
    assert f"{by_name['outer'].parent.span_id:016x}" == parent_id
    assert by_name["middle"].parent.span_id == by_name["outer"].context.span_id
    assert dict(by_name["middle"].attributes) == {"n": 1}
    assert dict(by_name["inner"].attributes) == {names.ERROR_TYPE: "ValueError"}
    assert not by_name["inner"].events
    assert by_name["inner"].status.description is None


def test_a_trace_that_is_not_recorded_costs_no_further_spans(kept):
    with spans.enter(Beginning("mine", parent=f"{CALLER[:-2]}00")) as begun:
        assert not begun.is_recorded
        assert spans.span("part") is spans.NO_SPAN
        assert spans.begin("part", {}) is begun
        assert spans.trace_parent().endswith("-00")
    kept.stop()
    assert kept.spans == []


def test_a_span_gets_the_id_and_the_link_that_are_given(kept):
    follows = f"{CALLER[:36]}{'c' * 16}-01"
    beginning = Beginning("attempt", parent=CALLER, id=7, follows=follows, at_ns=5)
    with spans.enter(beginning), spans.span("below"):
        spans.add("before", 5)
    kept.stop()
    by_name = {span.name: span for span in kept.spans}
    attempt = by_name["attempt"]
    assert (attempt.context.span_id, attempt.start_time) == (7, 5)
    assert [f"{link.context.span_id:016x}" for link in attempt.links] == ["c" * 16]
    assert by_name["below"].context.span_id != 7
    assert by_name["before"].parent.span_id == by_name["below"].context.span_id


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "00",
        f"00-{'0' * 32}-{'b' * 16}-01",
        f"00-{'a' * 32}-{'0' * 16}-01",
        f"00-{'A' * 32}-{'b' * 16}-01",
        f"01-{'a' * 32}-{'b' * 16}-01",
        f"00-{'a' * 32}-{'b' * 16}-01\n",
    ],
)
def test_what_is_no_traceparent_begins_a_new_trace(kept, sent):
    with spans.enter(Beginning("mine", "server", sent)):
        assert spans.trace_parent()
    kept.stop()
    [span] = kept.spans
    assert span.parent is None


def decision(sampler, kind, parent, trace_id):
    context = exporting._context_of(parent)
    return sampler.should_sample(context, trace_id, "x", kind).decision.is_sampled()


@pytest.mark.parametrize(
    "configured", [TraceIdRatioBased(0.5), ParentBased(TraceIdRatioBased(0.5))]
)
def test_callers_decide_neither_by_their_flag_nor_by_their_id(configured):
    """Their id, 1, would be recorded by any ratio."""
    sampler = CallerSampler(configured, trusts_callers=False)
    drawn = [decision(sampler, SpanKind.SERVER, CALLER, 1) for _ in range(400)]
    assert 100 < sum(drawn) < 300


def test_trusted_callers_decide_and_so_does_amber_in_another_process():
    never, always = ParentBased(TraceIdRatioBased(0)), ParentBased(ALWAYS_ON)
    asked = SpanKind.SERVER, CALLER, 1
    assert decision(CallerSampler(never, trusts_callers=True), *asked)
    assert not decision(CallerSampler(never, trusts_callers=False), *asked)
    inside = CallerSampler(never, trusts_callers=False)
    assert decision(inside, SpanKind.INTERNAL, CALLER, 1)
    unrecorded = f"{CALLER[:-2]}00"
    assert not decision(
        CallerSampler(always, trusts_callers=False), SpanKind.INTERNAL, unrecorded, 1
    )
    assert not decision(
        CallerSampler(ALWAYS_ON, trusts_callers=False), SpanKind.CLIENT, unrecorded, 1
    )


def test_what_no_collector_takes_is_dropped_and_counted(kept, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "3")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    counted: list[int] = []
    monkeypatch.setattr(losses, "count", counted.append)
    kept.go_on.clear()
    with spans.enter(Beginning("first")):
        """Begins the thread, which now waits for the collector."""
    recorder: Any = spans._recorder
    queue = recorder._export().queue
    deadline = time.monotonic() + 30
    while queue._spans and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(10):
        with spans.enter(Beginning("more")):
            """Ends at once: nobody waits."""
    kept.is_away = True
    kept.go_on.set()
    queue.shutdown()
    assert sum(counted) == 11
    assert kept.spans == []


def test_a_process_that_ends_waits_for_a_hanging_collector_only_so_long(monkeypatch):
    monkeypatch.setattr(exporting, "FLUSH_SECONDS", 0.05)
    exporter = Kept()
    exporter.go_on.clear()
    queue = SpanQueue(exporter)
    queue.shutdown()
    assert not queue._spans
    exporter.go_on.set()


def test_losses_are_counted_for_all_processes():
    before = losses.lost_count()
    losses.count(3)
    losses.count(2)
    assert losses.lost_count() == before + 5


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_only_a_named_collector_turns_traces_on(monkeypatch, environ, is_wanted):
    for name in (*start.ENDPOINTS, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert start.is_wanted() is is_wanted


def test_operators_name_the_service(monkeypatch):
    assert exporting._resource("chat").attributes["service.name"] == "amber-chat"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,service.namespace=other")
    named = exporting._resource("chat").attributes
    assert (named["service.name"], named["service.namespace"]) == ("mine", "other")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://acme.openai.azure.com/openai/v1", "azure.ai.openai"),
        ("https://api.x.ai/v1", "x_ai"),
        ("https://box.ai/v1", "box.ai"),
        ("http://vllm:8000/v1", "vllm"),
        ("", "offline"),
    ],
)
def test_providers_have_the_conventions_names(url, name):
    assert names.provider_name(url) == name
