"""Messages of a newer release, to workers of this one: what they do not know, they pass over."""

from typing import Any

from celery import current_app

from amber.celery import app
from amber.lib.workers.leases import StopReason
from chats.running.stopping import running_turns
from operations.maintenance import turns as turn_maintenance
from operations.maintenance.periodic_jobs import run as run_periodic_job


def test_every_task_takes_arguments_that_it_does_not_know():
    app.loader.import_default_modules()
    ours = [task for name, task in current_app.tasks.items() if not name.startswith("celery.")]
    assert len(ours) >= 9
    for task in ours:
        assert task.run.__code__.co_flags & 0x04, f"{task.name} takes no further arguments"


def test_an_unknown_periodic_job_is_left_to_the_next_release():
    run_periodic_job("plant_trees")


def test_unknown_words_on_the_control_channel_keep_the_listener(monkeypatch):
    stopped: list[Any] = []
    monkeypatch.setattr(running_turns, "stop", lambda pk, reason: stopped.append((str(pk), reason)))
    turn_id = "01a1fd3d-0983-731e-ad72-728598bfd6b6"
    for said in (b"plant trees", b"\xff\xfe", b'{"drain": 1}', turn_id.encode()):
        turn_maintenance._hear(said)
    assert stopped == [(turn_id, StopReason.CANCELLED)]
