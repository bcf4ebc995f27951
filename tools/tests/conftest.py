"""Provide a call's context, and a registry that forgets what a test registers."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from amber.lib.tests.conftest import other, server
from tools.calling import registry
from tools.protocol import ToolContext
from tools.tests.tool_service import weather

__all__ = ["other", "server", "weather"]


@pytest.fixture
def context():
    return ToolContext(
        organization_id=UUID(int=1),
        user_id=UUID(int=2),
        turn_id=UUID(int=3),
        time_zone="Asia/Shanghai",
        clock=lambda: datetime(2026, 3, 1, 22, 5, 9, tzinfo=UTC),
    )


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry, "_tools", {})
