"""Test the doorbell: a message is what Celery sends, and reaches its worker; one that cannot be sent is no error."""

import base64
import json
import logging
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from celery import Celery, signals
from celery.contrib.testing.worker import start_worker
from kombu import Queue

from amber.lib import redis as amber_redis
from amber.lib.tracing import spans
from amber.lib.workers.queue import TRACE_HEADER, enqueue, waiting

QUEUE, TASK, ARGUMENT = "test-messages", "tests.heard", "0198c0de"
NEW_EACH_TIME = {"id", "root_id", "correlation_id", "delivery_tag"}


@pytest.fixture
def celery(settings: Any) -> Iterator[Celery]:
    """Return an application of the test's own, with the same broker."""
    app = Celery("enqueue-test", broker=settings.REDIS_URL, set_as_current=False)
    app.conf.update(
        broker_transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS,
        task_queues=[Queue(QUEUE, no_ack=True)],
        task_ignore_result=True,
    )
    yield app
    amber_redis.client().delete(_key(settings))
    app.close()


def _key(settings: Any) -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{QUEUE}"


def _taken(settings: Any) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(amber_redis.client().lpop(_key(settings)))  # type: ignore[arg-type]
    return message | {"body": json.loads(base64.b64decode(message["body"]))}


def _stays(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in NEW_EACH_TIME}


def test_a_message_is_what_celery_sends(celery, settings, monkeypatch):
    monkeypatch.setattr(spans, "trace_parent", lambda: "00-1-2-01")
    celery.send_task(TASK, args=(ARGUMENT,), queue=QUEUE, headers={TRACE_HEADER: "00-1-2-01"})
    sent = _taken(settings)
    enqueue(QUEUE, TASK, ARGUMENT)
    written = _taken(settings)
    assert written["headers"][TRACE_HEADER] == "00-1-2-01"
    for part in ("headers", "properties"):
        mine, expected = written.pop(part), sent.pop(part)
        assert mine.keys() <= expected.keys()
        assert _stays(mine).items() == {n: expected[n] for n in _stays(mine)}.items()
    assert written == sent


def test_a_worker_takes_a_message_once(celery, monkeypatch):
    heard: SimpleQueue[str] = SimpleQueue()

    @celery.task(name=TASK)  # type: ignore[untyped-decorator]
    def hear(said: str) -> None:
        heard.put(said)

    monkeypatch.setattr(signals.worker_ready, "receivers", [])  # no maintenance
    enqueue(QUEUE, TASK, ARGUMENT)
    assert waiting(QUEUE) == 1
    with start_worker(celery, pool="solo", perform_ping_check=False, queues=[QUEUE]):
        assert heard.get(timeout=30) == ARGUMENT
    assert waiting(QUEUE) == 0
    assert heard.empty()


def test_a_message_without_redis_is_lost_and_no_error(settings, caplog):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody listens there
    with caplog.at_level(logging.WARNING):
        enqueue(QUEUE, TASK, ARGUMENT)
    assert "message_not_enqueued" in caplog.text
