"""Send spans to an OpenTelemetry collector by OTLP over HTTP, from a thread of its own.

Only `amber.lib.tracing.start` imports this, and with it OpenTelemetry's SDK (17 MB), where an operator has
named a collector. The address is the operator's, as that of Postgres is: it does not pass the guard
for addresses that tenants choose.

Nothing waits for the collector. Spans that have ended wait in a queue with a limit; what does not fit, and
what the collector does not take, is dropped and counted. Each process has its own queue and thread, made
with its first span, so also after a fork. OTEL_* variables have their standard meaning:
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler, SamplingResult
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.util.types import Attributes as OtelAttributes

from amber.lib.tracing import losses, names
from amber.lib.tracing.spans import TRACE_PARENT, Attributes, Beginning, TraceSpan

_SCOPE: Final = "amber"
_NO_CONTEXT: Final = Context()
FLUSH_SECONDS: Final = 2.0
"""The longest that a process that ends waits for its last spans to be taken."""


def _number(name: str, default: int) -> int:
    """Return a standard setting; what is no number is the default, as the conventions want."""
    raw = os.environ.get(name, "")
    return int(raw) if raw.isdecimal() and int(raw) else default


# -- Recording -------------------------------------------------------------------------------------


class OtlpRecorder:
    """Records spans with OpenTelemetry's SDK. `process` is what runs here: web, chat or ingest."""

    def __init__(self, process: str, *, trusts_callers: bool) -> None:
        self._process = process
        self._trusts_callers = trusts_callers
        self._lock = threading.Lock()
        self._exports: dict[int, _Export] = {}

    def begin(self, beginning: Beginning) -> TraceSpan:
        parent = _context_of(beginning.parent)
        if beginning.kind != "server" and _is_left_out(parent):
            return OtlpSpan(get_current_span(parent))
        export = self._export()
        links = [Link(span.get_span_context())] if (span := _remote(beginning.follows)) else None
        export.ids.give(beginning.id)
        begun = export.tracer.start_span(
            beginning.name,
            context=parent,
            kind=SpanKind[beginning.kind.upper()],
            attributes=_without_unknown(beginning.attributes),
            links=links,
            start_time=beginning.at_ns,
            record_exception=False,
        )
        return OtlpSpan(begun)

    def stop(self) -> None:
        """Send what waits, for FLUSH_SECONDS at most."""
        if export := self._exports.pop(os.getpid(), None):
            export.queue.shutdown()

    def _export(self) -> "_Export":
        export = self._exports.get(os.getpid())
        if export is not None:
            return export
        with self._lock:
            return self._exports.setdefault(
                os.getpid(), _Export(self._process, trusts_callers=self._trusts_callers)
            )


class _Export:
    """What one process needs to make spans and send them."""

    def __init__(self, process: str, *, trusts_callers: bool) -> None:
        self.ids = _GivenIds()
        self.queue = SpanQueue(OTLPSpanExporter())
        provider = TracerProvider(
            resource=_resource(process), id_generator=self.ids, shutdown_on_exit=False
        )
        provider.sampler = CallerSampler(provider.sampler, trusts_callers=trusts_callers)
        provider.add_span_processor(self.queue)
        self.tracer: Tracer = provider.get_tracer(_SCOPE)


def _resource(process: str) -> Resource:
    """Describe this process; what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before."""
    said = Resource.create()
    own = {
        "service.name": f"amber-{process}",
        "service.namespace": "amber",
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    is_named = not str(said.attributes["service.name"]).startswith("unknown_service")
    kept = {
        name for name in own if name in said.attributes and (name != "service.name" or is_named)
    }
    return said.merge(Resource({name: value for name, value in own.items() if name not in kept}))


class OtlpSpan:
    """A span of OpenTelemetry's SDK."""

    __slots__ = ("_is_recorded", "_span", "context")

    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        self._is_recorded = span.is_recording()
        self.context = set_span_in_context(span, _NO_CONTEXT)

    @property
    def is_recorded(self) -> bool:
        return self._is_recorded

    @property
    def trace_parent(self) -> str:
        about = self._span.get_span_context()
        return f"00-{about.trace_id:032x}-{about.span_id:016x}-{about.trace_flags & 1:02x}"

    def set(self, attributes: Attributes) -> None:
        if self._is_recorded:
            self._span.set_attributes(_without_unknown(attributes) or {})

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def end(self, error: str = "", *, at_ns: int | None = None) -> None:
        if not self._span.is_recording():
            return
        if error:
            self._span.set_attribute(names.ERROR_TYPE, error)
        if error and error != "cancelled":
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end(at_ns)


def _without_unknown(attributes: Attributes) -> OtelAttributes:
    return {name: value for name, value in attributes.items() if value is not None}


def _context_of(parent: TraceSpan | str | None) -> Context:
    if isinstance(parent, OtlpSpan):
        return parent.context
    remote = _remote(parent) if isinstance(parent, str) else None
    return set_span_in_context(remote, _NO_CONTEXT) if remote else _NO_CONTEXT


def _is_left_out(parent: Context) -> bool:
    """Whether Amber has decided, here or in another process, not to record the trace."""
    about = get_current_span(parent).get_span_context()
    return about.is_valid and not about.trace_flags.sampled


def _remote(trace_parent: str) -> NonRecordingSpan | None:
    """Return the span of another process; None if this is not one's `trace_parent`."""
    if not (found := TRACE_PARENT.fullmatch(trace_parent)):
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    return NonRecordingSpan(SpanContext(trace_id, span_id, True, TraceFlags(flags)))


class _GivenIds(RandomIdGenerator):
    """Makes random ids, but for the one span whose id was just given to this thread."""

    def __init__(self) -> None:
        self._given = threading.local()

    def give(self, span_id: int) -> None:
        self._given.id = span_id

    def generate_span_id(self) -> int:
        return getattr(self._given, "id", 0) or super().generate_span_id()


class CallerSampler(Sampler):
    """Decides once for each trace: where it enters Amber.

    What Amber has decided in another process holds. A caller's own decision holds only if callers are
    trusted: it could make Amber record everything, as could an id of the caller's choice, for which
    samplers by ratio decide. So the decision for a caller's trace is drawn with a random id.
    """

    def __init__(self, configured: Sampler, *, trusts_callers: bool) -> None:
        self._configured = configured
        self._trusts_callers = trusts_callers
        self._ids = RandomIdGenerator()

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: OtelAttributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        parent = get_current_span(parent_context).get_span_context()
        is_callers = kind is SpanKind.SERVER and parent.is_remote
        if parent.is_valid and not is_callers:
            decided = ALWAYS_ON if parent.trace_flags.sampled else ALWAYS_OFF
            return decided.should_sample(parent_context, trace_id, name, kind, attributes, links)
        if is_callers and self._trusts_callers:
            return self._configured.should_sample(
                parent_context, trace_id, name, kind, attributes, links, trace_state
            )
        drawn = self._ids.generate_trace_id()
        return self._configured.should_sample(_NO_CONTEXT, drawn, name, kind, attributes, links)

    def get_description(self) -> str:
        return f"CallerSampler{{{self._configured.get_description()}}}"


# -- Sending ---------------------------------------------------------------------------------------


class SpanQueue(SpanProcessor):
    """Spans that have ended, on their way to the collector: at most OTEL_BSP_MAX_QUEUE_SIZE (2,048)."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._most = _number("OTEL_BSP_MAX_QUEUE_SIZE", 2_048)
        self._batch = min(_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), self._most)
        self._delay_seconds = _number("OTEL_BSP_SCHEDULE_DELAY", 5_000) / 1_000
        self._spans: deque[ReadableSpan] = deque()
        self._lost = 0
        self._lost_lock = threading.Lock()
        self._is_ending = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trace-export", daemon=True)
        self._thread.start()

    def on_end(self, span: ReadableSpan) -> None:
        if len(self._spans) >= self._most:
            self._lose(1)
            return
        self._spans.append(span)
        if len(self._spans) >= self._batch:
            self._wake.set()

    def shutdown(self) -> None:
        """Send what waits; give up on what is not taken in FLUSH_SECONDS."""
        self._is_ending = True
        self._wake.set()
        self._thread.join(FLUSH_SECONDS)
        self._exporter.shutdown()

    def _run(self) -> None:
        while not self._is_ending:
            self._wake.wait(self._delay_seconds)
            self._wake.clear()
            self._send_all()
            self._count_losses()
        self._send_all()
        self._count_losses()

    def _send_all(self) -> None:
        while self._spans:
            batch = [self._spans.popleft() for _ in range(min(self._batch, len(self._spans)))]
            if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
                self._lose(len(batch))

    def _lose(self, spans: int) -> None:
        with self._lost_lock:
            self._lost += spans

    def _count_losses(self) -> None:
        with self._lost_lock:
            lost, self._lost = self._lost, 0
        if lost:
            losses.count(lost)
