"""Rings are heard and not answered: a test says when a worker works."""

import pytest


@pytest.fixture
def heard(monkeypatch):
    """The names of the tasks that were rung for, after their commits."""
    names: list[str] = []
    monkeypatch.setattr("libraries.queue.enqueue", lambda queue, task: names.append(task))
    return names
