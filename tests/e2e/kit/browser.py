"""A real browser for end-to-end tests: Debian's Chromium through Playwright, and a page to open in it.

`make browser` installs both. It is the headless shell, the same engine without a desktop's windows: a
new page costs a quarter of the processor time. Where only the whole browser is installed, that will do.
The page stands on an origin of its own, as strangers' pages do.
"""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
PATIENCE_MS = 20_000


def why_there_is_none() -> str:
    """Empty if there is a browser."""
    if CHROMIUM is None:
        return "chromium is not installed (make browser)"
    return "" if find_spec("playwright") else "playwright is not installed (make browser)"


@contextmanager
def chromium() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class WaitingBrowser:
    """A browser that goes on while its thread runs tests that have no page.

    Playwright marks its event loop as running in this thread for as long as it is there, and Django refuses
    queries where one runs. So the mark is there only while the browser is used.
    """

    def __init__(self, browser: "Browser") -> None:
        self._browser, self._loop = browser, asyncio.get_running_loop()
        asyncio._set_running_loop(None)

    @contextmanager
    def use(self) -> Iterator["Browser"]:
        """Have the browser for as long as the block lasts."""
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def wake(self) -> None:
        """Set the mark once more, so that the browser can be closed."""
        asyncio._set_running_loop(self._loop)


def expect(locator: "Locator", why: str | None = None) -> Any:
    """Playwright's assertions, which look again until they hold: a page draws when it comes to it."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE_MS)
    return expect(locator, why)


@contextmanager
def web_page(html: str, **headers: str) -> Iterator[str]:
    """Serves this page, whatever path is asked for; its origin."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
