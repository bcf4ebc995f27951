"""A message written by hand is what Celery would have sent, and what its worker takes."""

import base64
import json
from queue import SimpleQueue
from typing import Any

import pytest
from celery import Celery, signals
from celery.contrib.testing.worker import start_worker
from kombu import Queue

from amber.lib import redis as amber_redis
from amber.lib.workers.queue import enqueue, message, waiting

QUEUE, TASK, ARGUMENT = "test-messages", "tests.heard", "0198c0de"


@pytest.fixture
def broker_app(settings):
    """A Celery app of its own on the same broker."""
    app = Celery("enqueue-test", broker=settings.REDIS_URL, set_as_current=False)
    app.conf.update(
        broker_transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS,
        task_queues=[Queue(QUEUE, no_ack=True)],
    )
    yield app
    amber_redis.client().delete(_key(settings))
    app.close()


def _key(settings: Any) -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{QUEUE}"


def test_a_message_is_what_celery_sends(broker_app, settings):
    broker_app.send_task(TASK, args=(ARGUMENT,), queue=QUEUE, ignore_result=True)
    sent: Any = json.loads(amber_redis.client().lpop(_key(settings)))  # type: ignore[arg-type]
    written = json.loads(message(QUEUE, TASK, (ARGUMENT,)))
    assert json.loads(base64.b64decode(written.pop("body"))) == json.loads(
        base64.b64decode(sent.pop("body"))
    )
    for part in ("headers", "properties"):
        mine, expected = written.pop(part), sent.pop(part)
        own = {"id", "root_id", "correlation_id", "delivery_tag"}
        assert mine.keys() <= expected.keys()
        assert {n: v for n, v in mine.items() if n not in own} == {
            n: v for n, v in expected.items() if n in mine and n not in own
        }
    assert written == sent


def test_a_worker_of_celery_takes_it(broker_app, monkeypatch):
    heard: SimpleQueue[str] = SimpleQueue()

    @broker_app.task(name=TASK)  # type: ignore[untyped-decorator]
    def hear(said: str) -> None:
        heard.put(said)

    monkeypatch.setattr(signals.worker_ready, "receivers", [])  # no maintenance
    enqueue(QUEUE, TASK, ARGUMENT)
    assert waiting(QUEUE) == 1
    with start_worker(broker_app, pool="solo", perform_ping_check=False, queues=[QUEUE]):
        assert heard.get(timeout=30) == ARGUMENT
    assert waiting(QUEUE) == 0


def test_a_message_without_redis_is_lost_and_no_error(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody listens there
    enqueue(QUEUE, TASK, ARGUMENT)
