"""Provide what tests of chats share: enqueued turns, a provider, models of it."""

from typing import Any
from uuid import UUID

import pytest

from amber.lib.secrets import encrypt_column
from chats.models import Chat
from chats.tests.rows import new_assistant, new_chat
from providers.models import LanguageModel, Provider
from tests.fixtures.personas import Persona
from tests.fixtures.provider import RunningProvider, fake_provider
from tools.tests.tool_service import weather

__all__ = ["fake_provider", "weather"]


@pytest.fixture(autouse=True)
def enqueued_turns(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Return the turns that were enqueued; nothing reaches the broker."""
    heard: list[UUID] = []
    monkeypatch.setattr("chats.turns.admission.enqueue_turn", heard.append)
    monkeypatch.setattr("chats.approval_services.enqueue_turn", heard.append)
    return heard


@pytest.fixture
def assistant(alice: Persona) -> Any:
    return new_assistant(alice)


@pytest.fixture
def chat(alice: Persona, assistant: Any) -> Chat:
    return new_chat(alice, assistant=assistant)


@pytest.fixture
def provider(db: None, fake_provider: RunningProvider) -> Provider:
    """Return a row that leads to the fake provider."""
    row = Provider(name="Fake", base_url=fake_provider.base_url)
    encrypt_column(row, "api_key", fake_provider.api_key)
    row.save()
    return row


@pytest.fixture
def new_model(provider: Provider) -> Any:
    """Return a function: `new_model("fake-echo", default=True)` makes a model of this fake
    behaviour."""

    def make(alias: str = "fake-model", **fields: Any) -> LanguageModel:
        fields = {"upstream_id": alias} | fields
        return LanguageModel.objects.create(provider=provider, alias=alias, **fields)

    return make
