"""The browser, a person with an account, and their windows."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.browser import chromium, why_there_is_none
from tests.e2e.platform import Platform
from tests.e2e.sessions import new_account, signed_in
from tests.e2e.web.visitor import Person, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """One for each module: while Playwright runs, its thread has an event loop, and Django refuses queries."""
    if reason := why_there_is_none():
        pytest.skip(reason)
    with chromium() as running:
        yield running


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


@pytest.fixture
def visit(platform: Platform, browser: "Browser", person: Person) -> Iterator[Visit]:
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
            window = Visitor(beside.person, beside.context)
        else:
            usual = {"locale": "en-GB", "viewport": {"width": 1280, "height": 800}}
            context = browser.new_context(**(usual | options))
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            if is_signed_in:
                context.add_cookies(cookies_of(who))
            window = Visitor(who, context)
        windows.append(window)
        return window

    yield make
    for context in {window.context for window in windows}:
        context.close()
    for window in windows:
        assert not window.said
        assert not window.asked


def cookies_of(person: Person) -> "list[Any]":
    return [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        for name, value in person.http.cookies.items()
    ]
