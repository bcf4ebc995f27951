"""A visitor in front of a stranger's page with the widget, in a real browser; fixtures for the tests of the widget.

The page is examples/embed.html, under the strictest policy that lets it load the widget.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.kit.browser import web_page
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

ROOT = Path(__file__).resolve().parents[3]
EMBED = (ROOT / "examples" / "embed.html").read_text()
PATIENCE_MS = 30_000
PLAIN: dict[str, Any] = {"greeting": "", "suggested_questions": [], "guest_files": False}
WELCOME = {
    "greeting": "Hello, I am **Marie**. Show me your stones.",
    "suggested_questions": ["What is amber? [[fake tokens=6]]", "Does it float?"],
    "guest_files": True,
}


class Visit:
    """A visitor in front of a page with the widget."""

    def __init__(self, platform: Platform, ann: Client, context: "BrowserContext") -> None:
        self.platform, self.ann = platform, ann
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        """What the browser complained of: refused by policy, errors of scripts."""
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.locator(".chat").click()

    def button(self, name: str) -> "Locator":
        return self.page.get_by_role("button", name=name)

    @property
    def box(self) -> "Locator":
        return self.page.get_by_role("textbox")

    @property
    def answer(self) -> "Locator":
        """The last thing the assistant said."""
        return self.page.locator(".said:not(.you)").last

    def ask(self, question: str) -> None:
        self.box.fill(question)
        self.box.press("Enter")

    def wait_for_text(self, words: str) -> None:
        self.page.locator(".log").get_by_text(words).first.wait_for()

    def wait_for_end(self) -> None:
        self.button("Send").wait_for()

    def shows_instead(self, messages: list[dict[str, Any]]) -> None:
        """After a reload, these as the conversation."""
        page = {"next": None, "previous": None, "results": messages}
        anywhere = {"Access-Control-Allow-Origin": "*"}
        self.page.route(
            re.compile("/messages/"), lambda route: route.fulfill(json=page, headers=anywhere)
        )
        self.page.reload()
        self.page.locator(".sources").wait_for()

    def kept(self) -> dict[str, Any]:
        """What the widget keeps in this browser."""
        kept: dict[str, Any] = self.page.evaluate("JSON.parse(Object.values(localStorage)[0])")
        return kept


def embedded(platform: Platform, assistant_id: str) -> str:
    amber = f"http://127.0.0.1:{platform.port}"
    return EMBED.replace("http://127.0.0.1:8000", amber).replace("ASSISTANT_ID", assistant_id)


@pytest.fixture
def assistant(platform: Platform, ann: Client) -> Any:
    """`assistant("fake-slow")`: the id of a public one with this model."""

    def make(model: str = "fake-model", **fields: Any) -> str:
        assistant_id = ann.assistant(model)
        changes = {"public": True, "name": "Marie", "description": "Ask me about **resin**."}
        changes |= PLAIN | fields
        assert ann.request("PATCH", f"assistants/{assistant_id}/", changes).status == 200
        return assistant_id

    return make


@pytest.fixture
def visit(platform: Platform, ann: Client, browser: "Browser", assistant: Any) -> Iterator[Any]:
    """`visit("fake-slow")`: the page with an assistant of this model, its panel open."""
    amber = f"http://127.0.0.1:{platform.port}"
    policy = f"default-src 'none'; script-src {amber}; connect-src {amber}"
    servers, contexts, visits = [], [], []

    def make(
        model: str = "fake-model", fields: Mapping[str, Any] | None = None, **options: Any
    ) -> Visit:
        page = embedded(platform, assistant(model, **(fields or {})))
        server = web_page(page, Content_Security_Policy=policy)
        servers.append(server)
        address = server.__enter__()
        contexts.append(browser.new_context(**({"locale": "en-GB"} | options)))
        visits.append(Visit(platform, ann, contexts[-1]))
        visits[-1].open(address)
        return visits[-1]

    try:
        yield make
    finally:
        for context in contexts:
            context.close()
        for server in servers:
            server.__exit__(None, None, None)
    refused = [text for each in visits for text in each.said if "Content Security" in text]
    assert not refused
