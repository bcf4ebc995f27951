"""Pages in a real browser under their Content-Security-Policy: they work, and it refuses them nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kit.browser import expect, why_there_is_none
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import PASSWORD, new_account

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(why_there_is_none()), reason=why_there_is_none() or "there is one"),
]
PATIENCE_MS = 60_000
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (refused) =>
  console.error(`refused: ${refused.violatedDirective} ${refused.blockedURI} ${refused.sourceFile}`));
"""


def _is_complaint(message: "ConsoleMessage") -> bool:
    """Nobody has made an icon for the admin; browsers ask for one all the same."""
    is_icon = str(message.location.get("url", "")).endswith("/favicon.ico")
    return message.type == "error" and not is_icon


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """At its end the browser must have complained of nothing."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if _is_complaint(m) else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.add_init_script(TELL_VIOLATIONS)
    yield page
    page.close()
    assert said == []


def test_the_apis_description(platform: Platform, page: "Page") -> None:
    page.goto(f"http://127.0.0.1:{platform.port}/api/docs/")
    page.get_by_text("/api/v1/me/", exact=True).first.click()
    page.get_by_role("button", name="Try it out").first.click()
    page.get_by_role("button", name="Execute").first.wait_for()


def test_the_apis_operations_are_found_and_the_key_stays(platform: Platform, page: "Page") -> None:
    page.goto(f"http://127.0.0.1:{platform.port}/api/docs/")
    operation = page.locator(
        ".opblock-summary", has_text="/api/v1/messages/{message_id}/regenerate/"
    )
    operation.wait_for()  # as one text, so that the browser's own search finds it, too
    page.locator(".operation-filter-input").fill("regenerate post")
    page.wait_for_function("document.querySelectorAll('.opblock').length < 5")
    expect(operation).to_have_count(1)
    page.locator(".operation-filter-input").fill("")
    page.get_by_role("button", name="Authorize").first.click()
    page.locator("#auth-bearer-value").first.fill("amb_live_of_this_browser")
    page.get_by_role("button", name="Apply credentials").first.click()
    page.reload()
    operation.wait_for()
    assert "amb_live_of_this_browser" in page.evaluate("localStorage.authorized")


def _search(page: "Page", words: str) -> None:
    """Words that are typed before the index is there are not looked for, nor without a key."""
    page.locator(".md-search__input").click()
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for()
    page.locator(".md-search__input").fill(words)
    page.keyboard.press("End")


def test_the_docs(platform: Platform, page: "Page") -> None:
    platform.run("-m", "amber.docs_site.build")
    docs = f"http://127.0.0.1:{platform.port}/docs/"
    elsewhere: list[str] = []
    page.on("request", lambda r: elsewhere.append(r.url) if "//127.0.0.1:" not in r.url else None)
    page.goto(f"{docs}architecture/")
    page.wait_for_function(
        "[...document.querySelectorAll('img[src*=diagrams][src$=only-light]')]"
        ".every((each) => each.complete && each.naturalWidth > 100)"
    )
    _search(page, "别忘了")
    page.locator(".md-search-result__link", has_text="Memory").first.click()
    page.wait_for_url(f"{docs}memory/**")
    page.go_back()  # to what the browser has kept, with the policy of the answer that said so
    page.reload()
    _search(page, "lease")
    page.locator(".md-search-result__link", has_text="Architecture").first.wait_for()
    assert not elsewhere


def test_the_admin(platform: Platform, page: "Page") -> None:
    email = new_account(platform, "olga")
    promote = "UPDATE accounts_user SET is_staff = true, is_superuser = true WHERE email = %s"
    assert platform.query(f"{promote} RETURNING id", email)
    admin = f"http://127.0.0.1:{platform.port}/admin/"
    page.goto(admin)
    page.locator("#id_username").fill(email)
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_password").press("Enter")
    page.wait_for_url(admin)
    for path in ("accounts/user/", "providers/languagemodel/add/", "assistants/assistant/"):
        page.goto(admin + path)
        page.locator("#main, #content, main").first.wait_for()
    page.goto(f"{admin}accounts/user/?q=olga")
    page.get_by_role("link", name=email).first.click()
    page.get_by_role("button", name="Save", exact=True).first.wait_for()
    # Alpine.js has evaluated its expressions: nothing waits behind x-cloak.
    page.wait_for_function("document.querySelectorAll('html[x-cloak]').length === 0")
