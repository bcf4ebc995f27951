"""Take the pictures of docs/first-assistant.md and of the admin: `make tour-pictures`.

Starts Amber as a newcomer does, with the offline model, goes the way that the page describes in
Chromium, and then visits pages of the admin by their addresses. `AMBER_PICTURES_OF` may name an
Amber that runs already, with AMBER_ADMIN_PASSWORD; then nothing is started.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.kit.browser import chromium
from tests.fixtures.ports import free_port
from tests.installation.test_up import Up

if TYPE_CHECKING:
    from playwright.sync_api import Page

PASSWORD: Final = "correct horse battery staple"
DOCUMENT: Final = """# Pump

The pump is bled by opening the valve on its left side until water comes without bubbles.
Close the main valve before you begin."""
QUESTION: Final = "How is the pump bled?"
ADMIN: Final = {
    "tour-turn": "/admin/chats/turn/{turn}/change/",
    "admin-front": "/admin/",
    "admin-assistant": "/admin/assistants/assistant/{assistant}/change/",
    "admin-ingestion": "/admin/libraries/document/ingestion/",
}
"""Pages of the admin by the names of their pictures."""


def main(folder: Path) -> int:
    with running_amber() as url, chromium() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 820}, device_scale_factor=1.5, locale="en-GB"
        )
        page = context.new_page()
        page.set_default_timeout(60_000)
        sign_in(page, url)
        make_library(page, url)
        page.screenshot(path=folder / "tour-library.png")
        made = make_assistant(page, url)
        page.screenshot(path=folder / "tour-assistant.png")
        made |= talk(page, url, made["assistant"])
        page.screenshot(path=folder / "tour-chat.png")
        enter_admin(page, url)
        page.set_viewport_size({"width": 1280, "height": 960})
        for name, address in ADMIN.items():
            page.goto(url + address.format_map(made))
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"{name}.png")
    return 0


@contextmanager
def running_amber() -> Iterator[str]:
    if url := os.environ.get("AMBER_PICTURES_OF"):
        yield url.rstrip("/")
        return
    folder = Path(tempfile.mkdtemp(prefix="amber-pictures-"))
    folder.chmod(0o711)
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    own = {"AMBER_VAR_DIR": str(folder / "var"), "AMBER_PORT": str(free_port())}
    try:
        with Up(bare | own | {"AMBER_ADMIN_PASSWORD": PASSWORD}, folder / "log") as up:
            up.wait_for("Amber is ready")
            yield up.url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sign_in(page: "Page", url: str) -> None:
    page.goto(f"{url}/sign-in")
    page.get_by_label("Email").fill("admin@localhost")
    page.get_by_label("Password", exact=True).fill(password())
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("#composer").wait_for()


def password() -> str:
    return os.environ.get("AMBER_ADMIN_PASSWORD") or PASSWORD


def make_library(page: "Page", url: str) -> None:
    page.goto(f"{url}/libraries")
    page.get_by_role("button", name="New library").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Workshop")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Workshop").wait_for()
    page.get_by_role("button", name="Text", exact=True).click()
    dialog.get_by_label("Name").fill("pump.md")
    dialog.get_by_label("Content").fill(DOCUMENT)
    dialog.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Ready", exact=True).first.wait_for()


def make_assistant(page: "Page", url: str) -> dict[str, str]:
    page.goto(f"{url}/assistants/new")
    page.get_by_label("Name", exact=True).fill("Mechanic")
    page.get_by_label("Prompt", exact=True).fill("You answer from the manuals, briefly.")
    page.get_by_label("Library", exact=True).select_option(label="Workshop")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/assistants/0*")
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_label("Your question").press("Enter")
    page.locator(".try-log").get_by_text("valve on its left side").first.wait_for()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.evaluate("window.scrollTo(0, 0)")
    return {"assistant": page.url.rpartition("/")[2]}


def talk(page: "Page", url: str, assistant_id: str) -> dict[str, str]:
    page.goto(f"{url}/assistants")
    page.get_by_role("button", name="Chat: Mechanic").click()
    page.locator("#composer").fill(QUESTION)
    page.locator("#composer").press("Enter")
    page.wait_for_url("**/chats/0*")
    page.locator("article.answer").get_by_text("valve on its left side").first.wait_for()
    page.locator("article.answer .actions, article.answer button").first.wait_for()
    chat_id = page.url.rpartition("/")[2]
    answer = page.evaluate(
        "async (chat) => (await (await fetch(`/api/v1/chats/${chat}/messages/`)).json()).results.at(-1)",
        chat_id,
    )
    return {"chat": chat_id, "turn": answer["turn_id"], "assistant": assistant_id}


def enter_admin(page: "Page", url: str) -> None:
    page.goto(f"{url}/admin/")
    if page.locator("#id_username").count():
        page.locator("#id_username").fill("admin@localhost")
        page.locator("#id_password").fill(password())
        page.locator("button[type=submit]").first.click()
        page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
