"""Collect metrics for Prometheus: the web process's requests, and the turns in Postgres.

Requests are counted around the ASGI application, not in a Django middleware: each of those costs
two thread hops a request. Numbers of turns come from Postgres at scrape time, so that one scrape
of any web process sees all workers.
"""

import os
import time
from collections.abc import Iterable, MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models import Avg, Count, F, Min
from django.utils import timezone
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from accounts.models import MailStatus, OutgoingMail
from amber.lib.ids import least_id_at
from amber.lib.tracing import spans
from amber.lib.tracing.losses import lost_count
from amber.lib.workers.guard import fault_counts
from amber.lib.workers.interpreter_watch import held_count
from amber.web.request_log import Application, Receive, Scope, Send
from chats.models import Turn
from engine.events import TurnStatus
from operations.maintenance.heartbeats import consuming_queues, held_counts

RECENT = timedelta(minutes=5)
"""The period that figures about ended turns cover."""

_REQUESTS = Counter("amber_http_requests", "Answered requests", ["method", "status"])
_SECONDS = Histogram("amber_http_first_byte_seconds", "Request to first byte of the answer")
_OPEN = Gauge(
    "amber_http_open_responses",
    "Answers being sent, event streams among them",
    multiprocess_mode="livesum",
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def count_requests(application: Application) -> Application:
    """Wrap the application to count its requests."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"

        async def count(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                _REQUESTS.labels(method, str(message["status"])).inc()
                _SECONDS.observe(time.perf_counter() - began)
            await send(message)

        with _OPEN.track_inprogress():
            await application(scope, receive, count)

    return answer


def scrape() -> bytes:
    """Return all metrics in Prometheus' text form, of every web process that `up` started beside this.

    Several share a folder (PROMETHEUS_MULTIPROC_DIR), in which each keeps its numbers.
    """
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return generate_latest()
    for numbers in Path(folder).glob("gauge_live*_*.db"):
        pid = int(numbers.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            multiprocess.mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    registry.register(TurnCollector())
    return generate_latest(registry)


class TurnCollector(Collector):
    """Yields metrics of turns, workers and mails by five cheap queries a scrape, and one of Redis."""

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        yield from _live()
        yield from _recent()
        workers = GaugeMetricFamily("amber_queue_consumed", "1: workers consume", labels=["queue"])
        consumed = consuming_queues()
        for queue in ("chat", "ingest"):
            workers.add_metric([queue], queue in consumed)
        yield workers
        yield from _faults()
        yield from _lost_spans()
        yield _mails()
        held = CounterMetricFamily(
            "amber_interpreter_held", "Times a thread held the interpreter", labels=["process"]
        )
        for process, count in {
            "chat": 0,
            "ingest": 0,
            **held_counts(),
            "web": held_count(),
        }.items():
            held.add_metric([process], count)
        yield held


def _live() -> Iterable[Metric]:
    live = GaugeMetricFamily("amber_turns_live", "Turns not ended", labels=["status"])
    oldest = GaugeMetricFamily("amber_turn_oldest_queued_seconds", "Age of the oldest queued turn")
    # A turn may be queued again, as after an approval: it waits since then.
    rows = Turn.objects.live().values("status").annotate(n=Count("pk"), since=Min("updated_at"))
    found = {row["status"]: row for row in rows}
    for status in (TurnStatus.QUEUED, TurnStatus.RUNNING, TurnStatus.WAITING):
        live.add_metric([status], found[status]["n"] if status in found else 0)
    queued = found.get(TurnStatus.QUEUED)
    age = (timezone.now() - queued["since"]).total_seconds() if queued else 0
    oldest.add_metric([], age)
    return [live, oldest]


def _recent() -> Iterable[Metric]:
    ended = GaugeMetricFamily(
        "amber_turns_recent", "Turns started in the last 5 minutes", labels=["status"]
    )
    first = GaugeMetricFamily(
        "amber_turn_first_token_seconds_recent", "Question to first token, mean over 5 minutes"
    )
    recent = Turn.objects.filter(pk__gte=least_id_at(timezone.now() - RECENT))
    for row in recent.values("status").annotate(n=Count("pk")):
        ended.add_metric([row["status"]], row["n"])
    mean = recent.aggregate(mean=Avg(F("first_token_at") - F("created_at")))["mean"]
    first.add_metric([], mean.total_seconds() if mean else 0)
    return [ended, first]


def _mails() -> Metric:
    mails = GaugeMetricFamily("amber_mails", "Mails that wait or failed", labels=["status"])
    rows = OutgoingMail.objects.exclude(status=MailStatus.SENT).values_list("status")
    found = dict(rows.annotate(n=Count("pk")))
    for status in (MailStatus.QUEUED, MailStatus.RUNNING, MailStatus.FAILED):
        mails.add_metric([status], found.get(status, 0))
    return mails


def _faults() -> Iterable[Metric]:
    """Yield the faults; none while Redis is away, which keeps the count."""
    faults = CounterMetricFamily(
        "amber_maintenance_faults", "Faults of workers' maintenance", labels=["part"]
    )
    try:
        counted = fault_counts()
    except (RedisError, OSError):
        return []
    for part, count in counted.items():
        faults.add_metric([part], count)
    return [faults]


def _lost_spans() -> Iterable[Metric]:
    """Yield how many spans no collector got; nothing without traces, or while Redis is away."""
    if not spans.is_on():
        return []
    lost = CounterMetricFamily("amber_trace_spans_lost", "Spans that no collector got")
    try:
        lost.add_metric([], lost_count())
    except (RedisError, OSError):
        return []
    return [lost]


REGISTRY.register(TurnCollector())
