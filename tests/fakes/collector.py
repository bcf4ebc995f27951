"""Collect spans as an OpenTelemetry collector does: OTLP over HTTP on 127.0.0.1, kept in memory.

with collector() as found:
    … OTEL_EXPORTER_OTLP_ENDPOINT=found.url …
    found.wait_for(lambda: found.named("chat fake-model"))
"""

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE_SECONDS = 40.0


@dataclass(frozen=True)
class Found:
    """One span, as a collector has it. Ids are hexadecimal, times nanoseconds."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    began_ns: int
    ended_ns: int
    is_error: bool
    attributes: dict[str, Any] = field(hash=False)


class Collector:
    """What has come so far. While `is_hanging`, requests are kept waiting."""

    def __init__(self) -> None:
        self.spans: list[Found] = []
        self.headers: list[dict[str, str]] = []
        self.let_go = threading.Event()
        self.is_hanging = False
        self.url = ""

    def of_trace(self, trace_id: str) -> list[Found]:
        return [span for span in list(self.spans) if span.trace_id == trace_id]

    def named(self, name: str, trace_id: str = "") -> list[Found]:
        return [s for s in list(self.spans) if s.name == name and trace_id in ("", s.trace_id)]

    def wait_for(self, check: Callable[[], Any]) -> Any:
        """Return what `check` returns once that is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := check()):
            assert time.monotonic() < deadline, sorted({span.name for span in self.spans})
            time.sleep(0.1)
        return found

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for sent in request.resource_spans:
            about = _attributes(sent.resource.attributes)
            for scope in sent.scope_spans:
                self.spans += [_found(about["service.name"], span) for span in scope.spans]


def _found(service: str, span: Any) -> Found:
    return Found(
        service=service,
        name=span.name,
        kind=span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=tuple(link.span_id.hex() for link in span.links),
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        is_error=span.status.code == 2,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


@contextmanager
def collector() -> Iterator[Collector]:
    """Listen, until the block ends."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if found.is_hanging:
                found.let_go.wait(PATIENCE_SECONDS)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            found.headers.append(dict(self.headers))
            found.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
