"""Configure Celery for the workers. A message only wakes a worker: the work is rows that know their
own state.

A worker that consumes runs its maintenance (`operations.maintenance.worker`): leases, sweeps,
heartbeat, draining.
"""

import os
import time
from typing import Any

import structlog
from celery import Celery, bootsteps
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.consumer import Consumer as CeleryConsumer
from celery.worker.state import maybe_shutdown
from kombu import Connection, Queue

from amber.lib.tracing import spans
from amber.lib.workers.queue import QUEUES
from amber.lib.workers.task_spans import trace_tasks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")

app = Celery("amber")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Without acknowledgement: the sweep enqueues again what a lost message named, and each message
# saves the worker's main loop two round trips to Redis.
app.conf.task_queues = [Queue(name, no_ack=True) for name in QUEUES]
if spans.is_on():
    trace_tasks()

logger = structlog.get_logger(__name__)

_PULSE_SECONDS = 2.0
_RECONNECT_SECONDS = 1
_maintenances: list[Any] = []


class Consumer(CeleryConsumer):
    """A consumer that tries Redis about every second, for as long as it takes.

    Celery's own pause grows to 30 s, so that a worker stays away long after Redis is back, and
    after 100 attempts the worker ends, with all turns that it runs.
    """

    _connecting_at = 0.0

    def ensure_connected(self, conn: Connection) -> Connection:
        # A Redis that refuses writes accepts connections: without a pause this would be a busy
        # loop.
        early_seconds = self._connecting_at + _RECONNECT_SECONDS - time.monotonic()
        time.sleep(max(0.0, early_seconds))
        self._connecting_at = time.monotonic()
        connected: Connection = conn.ensure_connection(
            _log_failure,
            interval_start=_RECONNECT_SECONDS,
            interval_step=0,
            interval_max=_RECONNECT_SECONDS,
            # After each attempt: a worker that is told to stop must not wait for Redis.
            callback=maybe_shutdown,
        )
        # From here on Celery takes a lost connection for one of a running worker.
        self.first_connection_attempt = False
        return connected


def _log_failure(exc: Exception, _interval_seconds: float) -> None:
    logger.warning("broker_unreachable", reason=type(exc).__name__)


class Pulse(bootsteps.StartStopStep):
    """A sign that the consumer's own loop runs: its timer stops with the connection."""

    requires = ("celery.worker.consumer:Tasks",)

    def start(self, parent: Any) -> None:
        # kombu acknowledges even so: a Redis that hangs would hold the main loop for 5 s.
        parent.task_consumer.channel.basic_ack = _nothing_to_acknowledge
        _note_pulse()
        self._timer = parent.timer.call_repeatedly(_PULSE_SECONDS, _note_pulse)

    def stop(self, parent: Any) -> None:
        self._timer.cancel()


app.steps["consumer"].add(Pulse)


def _nothing_to_acknowledge(*_: Any, **__: Any) -> None:
    pass


def _note_pulse() -> None:
    from amber.lib.workers.worker import this_worker

    this_worker().consuming_at = time.monotonic()


@worker_ready.connect
def _start_maintenance(sender: Any, **_: Any) -> None:
    from amber.lib.workers import interpreter_watch
    from amber.lib.workers.worker import this_worker
    from operations.maintenance.worker import WorkerMaintenance

    interpreter_watch.start()
    queue = next(iter(sender.app.amqp.queues.consume_from))
    maintenance = WorkerMaintenance(
        this_worker(), queue=queue, queue_maintenance=_queue_maintenance(queue)
    )
    _maintenances.append(maintenance)
    maintenance.start()


def _queue_maintenance(queue: str) -> Any:
    """Return the queue's own maintenance; the other's modules, 5 MB, are not imported."""
    if queue == "chat":
        from operations.maintenance.turns import TurnMaintenance

        return TurnMaintenance()
    from operations.maintenance.documents import DocumentMaintenance

    return DocumentMaintenance()


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    for maintenance in _maintenances:
        maintenance.drain()
