"""A worker that runs what is enqueued, in threads of this process; a provider and its models; a server,
and OpenAI's own client with a key of alice's.
"""

import threading
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from django.db import connections
from openai import OpenAI

from amber.lib.workers.leases import StopReason
from chats.models import Turn
from chats.running.stopping import running_turns
from chats.tests.conftest import fake_provider, new_model, provider
from chats.tests.runs import WAIT_SECONDS, run_named
from providers.models import LanguageModel
from public_api.tests.live_server import live_server, sdk
from tests.fixtures.personas import Persona

__all__ = ["fake_provider", "new_model", "provider"]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[list[UUID]]:
    """The ids of the turns that were run; on the way out all of them have ended."""
    threads: list[threading.Thread] = []
    enqueued: list[UUID] = []

    def run(turn_id: UUID) -> None:
        try:
            run_named(turn_id)
        finally:
            connections.close_all()

    def enqueue(turn_id: UUID) -> None:
        enqueued.append(turn_id)
        threads.append(threading.Thread(target=run, args=(turn_id,)))
        threads[-1].start()

    monkeypatch.setattr("chats.turns.admission.enqueue_turn", enqueue)
    # Redis carries cancel requests to real workers; here there is one, and it is this process.
    for place in ("chats.services", "chats.call_services"):
        monkeypatch.setattr(
            f"{place}.announce_cancel", lambda pk: running_turns.stop(pk, StopReason.CANCELLED)
        )
    yield enqueued
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), Turn.objects.values_list("status", flat=True)


@pytest.fixture
def address(worker: list[UUID]) -> Iterator[str]:
    """Of a server whose turns are run."""
    with live_server() as found:
        yield found


@pytest.fixture
def client(address: str, alice: Persona) -> Iterator[OpenAI]:
    with sdk(address, alice.new_key(scopes=["public"])[1]) as found:
        yield found


@pytest.fixture
def model(new_model: Callable[..., LanguageModel]) -> LanguageModel:
    return new_model(default=True)
