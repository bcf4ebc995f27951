"""A person with an account, and their windows.

To show the page for the first time costs a window more than twice the processor time: a process of
Chromium, 65 files, their compilation. So a test's first window is the one of the test before, emptied.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import new_account, signed_in
from tests.e2e.web.visitor import Person, Visitor, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Visit = Callable[..., Visitor]
VIEWPORT: Final = {"width": 1280, "height": 800}
STORED: Final = "local_storage,indexeddb,cache_storage,service_workers"


@pytest.fixture(scope="module")
def person(running_platform: Platform) -> Iterator[Person]:
    """Somebody new in each module, so that one's chats are not in another's way."""
    running_platform.restore()
    email = new_account(running_platform, "paula")
    with signed_in(running_platform, email) as http:
        person = Person(running_platform, email, http)
        person.assistant("Marie")
        yield person


@pytest.fixture(scope="module")
def organization(person: Person) -> str:
    """An organization that the person owns, and works in."""
    made = person.post("organizations/", {"name": "Baltic Resin"})
    person.put("me/organization/", {"organization_id": made["id"]})
    person.assistants.clear()
    person.assistant("Marie")
    return str(made["id"])


class UsedWindow:
    """A window that goes from test to test: it keeps its process and the page's files, nothing else."""

    page: "Page | None" = None

    def take(self, browser: "Browser") -> "Page":
        self.page = self.page or new_page(new_context(browser))
        return self.page

    def empty(self, base: str) -> None:
        """Forget what a test did. It stays at Amber: elsewhere it would get another process."""
        if not self.page:
            return
        page, context = self.page, self.page.context
        if page.is_closed():
            context.close()
            self.page = None
            return
        for other in context.pages[:]:
            if other is not page:
                other.close()
        context.set_offline(False)
        page.unroute_all(behavior="ignoreErrors")
        page.goto(f"{base}/healthz")
        page.evaluate("() => sessionStorage.clear()")
        context.clear_cookies()
        session = context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": base, "storageTypes": STORED})
        session.detach()
        page.set_viewport_size(VIEWPORT)
        page.emulate_media(media="null", color_scheme="light", reduced_motion="no-preference")
        page.mouse.move(-1, -1)


def new_context(browser: "Browser", **options: Any) -> "BrowserContext":
    context = browser.new_context(**({"locale": "en-GB", "viewport": VIEWPORT} | options))
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context


@pytest.fixture(scope="session")
def used_window() -> UsedWindow:
    return UsedWindow()


@pytest.fixture
def visit(
    platform: Platform, browser: "Browser", used_window: UsedWindow, person: Person
) -> Iterator[Visit]:
    """`visit()`: a window of a browser that is signed in. `visit(beside=v)`: another of v's browser.

    At the end no window may have been refused anything by the policy, nor asked anybody else.
    """
    windows: list[Visitor] = []

    def make(
        *,
        who: Person | None = None,
        beside: Visitor | None = None,
        is_signed_in: bool = True,
        **options: Any,
    ) -> Visitor:
        who = who or person
        if beside:
            window = Visitor(beside.person, new_page(beside.context))
        else:
            is_usual = not windows and not options
            page = (
                used_window.take(browser) if is_usual else new_page(new_context(browser, **options))
            )
            if is_signed_in:
                page.context.add_cookies(cookies_of(who))
            window = Visitor(who, page)
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.stop_listening()
    for context in {window.context for window in windows}:
        if not used_window.page or context != used_window.page.context:
            context.close()
    used_window.empty(f"http://127.0.0.1:{platform.port}")
    for window in windows:
        assert not window.said
        assert not window.asked


def cookies_of(person: Person) -> "list[Any]":
    return [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        for name, value in person.http.cookies.items()
    ]
