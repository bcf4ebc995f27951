"""Record the messages to workers, and deliver none: a test says when a worker works."""

import pytest


@pytest.fixture
def enqueued(monkeypatch):
    """The names of the tasks that were enqueued, after their commits."""
    names: list[str] = []
    monkeypatch.setattr("libraries.queue.enqueue", lambda queue, task, *_: names.append(task))
    return names
