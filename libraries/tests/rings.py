"""Rings are heard and not answered: a test says when a worker works."""

import pytest


@pytest.fixture
def heard(monkeypatch):
    """The names of the tasks that were rung for, after their commits."""
    from libraries import tasks

    names: list[str] = []
    for task in (tasks.ingest, tasks.erase, tasks.import_repositories):
        monkeypatch.setattr(
            task, "apply_async", lambda *_, name=task.name, **__: names.append(name)
        )
    return names
