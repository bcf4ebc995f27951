"""Tools that a test registers are gone with the test: no other finds them in the registry."""

import pytest

from tools.calling import registry


@pytest.fixture(autouse=True)
def own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the registry for each test."""
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))
