"""Provide what tests of operations share with those of chats: models, a provider, enqueued
turns."""

from chats.tests.conftest import (
    assistant,
    enqueued_turns,
    new_model,
    provider,
)
from tests.fixtures.provider import fake_provider
from tools.tests.tool_service import weather

__all__ = [
    "assistant",
    "enqueued_turns",
    "fake_provider",
    "new_model",
    "provider",
    "weather",
]
