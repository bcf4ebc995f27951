"""The platform of the end-to-end tests, its people, the browser, and a look at the log after each test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kit.browser import WaitingBrowser, chromium, why_there_is_none
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import QUICK_LEASE, Platform, started_platform
from tests.fixtures.provider import RunningProvider, fake_provider

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["fake_provider"]


@pytest.fixture(scope="session")
def running_platform(fake_provider: RunningProvider) -> Iterator[Platform]:
    with started_platform(fake_provider.base_url) as platform:
        yield platform


@pytest.fixture
def platform(running_platform: Platform) -> Iterator[Platform]:
    """Whole at the start of each test; whatever was broken in it, no process may leave a trace."""
    running_platform.restore()
    with leaves_no_trace(running_platform):
        yield running_platform


@pytest.fixture
def quick_platform(running_platform: Platform) -> Iterator[Platform]:
    """As `platform`; its chat worker has a QUICK_LEASE, and stays for the next test that wants one."""
    running_platform.restore(chat=QUICK_LEASE)
    with leaves_no_trace(running_platform):
        yield running_platform


@pytest.fixture(scope="session")
def waiting_browser() -> Iterator[WaitingBrowser]:
    """One for all tests of this process: to start it, and to show the page for the first time, costs seconds."""
    if reason := why_there_is_none():
        pytest.skip(reason)
    with chromium() as browser:
        waiting = WaitingBrowser(browser)
        yield waiting
        waiting.wake()


@pytest.fixture(scope="module")
def browser(waiting_browser: WaitingBrowser) -> Iterator["Browser"]:
    with waiting_browser.use() as browser:
        yield browser


@contextmanager
def leaves_no_trace(platform: Platform) -> Iterator[None]:
    before = platform.log.stat().st_size
    yield
    with platform.log.open("rb") as log:
        log.seek(before)
        said = log.read().decode(errors="replace")
    assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def ann(running_platform: Platform) -> Client:
    return running_platform.new_person("ann", "Acme")


@pytest.fixture(scope="session")
def rob(running_platform: Platform) -> Client:
    """Of another organization."""
    return running_platform.new_person("rob", "Rival")
