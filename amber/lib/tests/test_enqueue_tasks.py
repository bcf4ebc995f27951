"""Test the doorbell: a message reaches Celery's worker; one that cannot be sent is no error."""

import logging
from collections import deque
from queue import SimpleQueue
from typing import Any

import pytest
from celery import Celery, signals
from celery.contrib.testing.worker import start_worker
from kombu import Queue

from amber.lib import redis as amber_redis
from amber.lib.workers import queue
from amber.lib.workers.queue import enqueue, waiting

QUEUE, TASK, ARGUMENT = "test-messages", "tests.heard", "0198c0de"


@pytest.fixture
def use_broker(monkeypatch, settings):
    """Return a function that makes messages go by an application of the test's own."""

    def use(url: str) -> Celery:
        app = Celery("enqueue-test", broker=url, set_as_current=False)
        app.conf.update(
            broker_transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS,
            task_queues=[Queue(QUEUE, no_ack=True)],
            task_ignore_result=True,
        )
        sender = queue.MessageSender(app)
        monkeypatch.setattr(queue, "_sender", lambda: sender)
        return app

    return use


def test_a_worker_takes_a_message_once(use_broker, settings, monkeypatch):
    app = use_broker(settings.REDIS_URL)
    heard: SimpleQueue[str] = SimpleQueue()

    @app.task(name=TASK)  # type: ignore[untyped-decorator]
    def hear(said: str) -> None:
        heard.put(said)

    monkeypatch.setattr(signals.worker_ready, "receivers", [])  # no maintenance
    enqueue(QUEUE, TASK, ARGUMENT)
    assert waiting(QUEUE) == 1
    with start_worker(app, pool="solo", perform_ping_check=False, queues=[QUEUE]):
        assert heard.get(timeout=30) == ARGUMENT
    assert waiting(QUEUE) == 0
    assert heard.empty()


def test_a_message_without_redis_is_lost_and_no_error(use_broker, caplog):
    use_broker("redis://127.0.0.1:1/0")  # nobody listens there
    with caplog.at_level(logging.WARNING):
        enqueue(QUEUE, TASK, ARGUMENT)
    assert "message_not_enqueued" in caplog.text
    assert "onnect" in caplog.text, "why"


class TakenMeanwhile(deque[Any]):
    """Is empty as soon as somebody has seen that it is not: another thread was quicker."""

    def __bool__(self) -> bool:
        was_filled = len(self) > 0
        self.clear()
        return was_filled


def test_threads_may_send_at_the_same_time(use_broker, settings):
    use_broker(settings.REDIS_URL)
    sender = queue._sender()
    sender._idle = TakenMeanwhile()
    before = waiting(QUEUE)
    enqueue(QUEUE, TASK, ARGUMENT)
    enqueue(QUEUE, TASK, ARGUMENT)
    assert waiting(QUEUE) == before + 2
    amber_redis.client().delete(queue._key(QUEUE))
