"""Fixtures that tests of operations share with those of chats: models, a provider, enqueued turns."""

from chats.tests.conftest import assistant, new_model, no_connection_left_open, provider, rings
from tests.fixtures_provider import fake_provider
from tools.tests.tool_service import weather

__all__ = [
    "assistant",
    "fake_provider",
    "new_model",
    "no_connection_left_open",
    "provider",
    "rings",
    "weather",
]
