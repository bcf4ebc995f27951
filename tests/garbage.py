"""Looks for no garbage among the tests themselves; a pytest plugin.

Ten thousand collected tests are a million objects that stay. Nothing is garbage while they are
collected, and later each full collection would look at all of them: a third of what collecting
the tests costs. So they are set aside, as a worker does it with its modules.
"""

import gc
from collections.abc import Generator

import pytest

from amber.lib.workers import garbage

garbage.put_off()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        garbage.set_aside()
        gc.enable()
