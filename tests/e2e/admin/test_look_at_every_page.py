"""Every page of the admin that an operator can click to, with rows, and the pages of signing in: each fits a
laptop and a phone in German, whose words are the longest, and axe-core finds nothing, in light and in dark.

The table of pages is made by following the links, one page for each kind of address: a new page needs no word here.
`ADMIN_PICTURES=folder` keeps a picture of each.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import httpx2
import pytest
from django.conf import settings
from django.contrib import admin
from django.urls import get_resolver

from tests.e2e.kit.axe import AXE, RULES
from tests.e2e.web.visitor import Person, Visitor, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1_800)]

LOOKS: Final = (
    ({"width": 1280, "height": 800}, "light"),
    ({"width": 390, "height": 844}, "dark"),
)
_LANGUAGE: Final = "de"
_ID: Final = re.compile(r"/(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-zA-Z_-]{24,}|\d+)(?=/)")
_ALIKE: Final = (
    (re.compile(r"^/admin/\w+/$"), "/admin/app/"),
    (re.compile(r"^/admin/\w+/\w+/ID/(history|delete)/$"), r"/admin/app/model/ID/\1/"),
)
"""Pages that are the same template with the same parts for every app or table: one of them is looked at."""
_ACTS: Final = ("/logout/", "/connect/")
"""Links that do something, or lead elsewhere."""
_LINKS: Final = """() => [...document.querySelectorAll("a[href]")].map((a) => a.href)"""
_RUN_AXE: Final = """async (rules) => {
  const found = await axe.run(document, rules);
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => ({ id, html: html.slice(0, 400), why: failureSummary })));
}"""
_TOO_WIDE: Final = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return "";
  const over = (each) => each.getBoundingClientRect().right > wide + 1;
  const inmost = (each) => over(each) && ![...each.children].some(over);
  const found = [...document.body.querySelectorAll("*")].find(inmost);
  return `${document.documentElement.scrollWidth} px wide: ${found?.outerHTML.slice(0, 160)}`;
}"""


@dataclass
class Looks:
    """The addresses that were found, by their kind, and what is wrong: the first place, and how many there are."""

    pages: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, where: str) -> None:
        self.wrong.setdefault(what, []).append(where)

    def __str__(self) -> str:
        told = (f"{at[0]} and {len(at) - 1} more: {what}" for what, at in self.wrong.items())
        return "\n".join([f"{len(self.pages)} pages", *told])


@pytest.fixture(scope="module")
def looks(desk: Visitor) -> Looks:
    """A look at each kind of page, found by following links from the front page."""
    looks = Looks({"/admin/": "/admin/"})
    waiting = list(looks.pages)
    while waiting:
        kind = waiting.pop(0)
        for path in _look(desk, kind, looks):
            new = _kind_of(path)
            if new not in looks.pages:
                looks.pages[new] = path
                waiting.append(new)
    return looks


@pytest.fixture
def stranger(browser: "Browser", operator: Person) -> Iterator[Visitor]:
    """A window in which nobody is signed in."""
    context = browser.new_context(locale="en-GB")
    window = Visitor(operator, new_page(context))
    if AXE.exists():
        window.page.add_init_script(path=AXE)
    yield window
    context.close()
    assert not window.said


def _consent_path(operator: Person) -> str:
    """Return the page on which a person lets an application in, which has just registered."""
    back = "http://127.0.0.1:7777/callback"
    asked = {
        "client_name": "Reader",
        "redirect_uris": [back],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    root = f"http://127.0.0.1:{operator.platform.port}"
    told = httpx2.post(f"{root}/identity/o/api/clients", json=asked)
    assert told.status_code == 201, told.text
    query = {
        "response_type": "code",
        "client_id": told.json()["client_id"],
        "redirect_uri": back,
        "scope": "mcp",
        "state": "1",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "resource": f"{root}/mcp",
    }
    return f"/identity/o/authorize?{urlencode(query)}"


def _kind_of(path: str) -> str:
    kind = _ID.sub("/ID", path)
    for pattern, alike in _ALIKE:
        kind = pattern.sub(alike, kind)
    return kind


def _look(desk: Visitor, kind: str, looks: Looks) -> list[str]:
    """Look at the page on a laptop and on a phone; the admin's addresses that it links to."""
    paths: list[str] = []
    chosen = {"name": settings.LANGUAGE_COOKIE_NAME, "value": _LANGUAGE, "url": desk.base}
    desk.context.add_cookies([chosen])
    for size, scheme in LOOKS:
        desk.page.set_viewport_size(size)
        desk.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        answer = desk.page.goto(desk.base + looks.pages[kind])
        if not answer or answer.status != 200:
            looks.note(f"answered {answer and answer.status}", kind)
            return []
        if (told := desk.page.evaluate("document.documentElement.lang")) != _LANGUAGE:
            looks.note(f"is in {told}", kind)
        for what in (*_faults_of_width(desk), *_violations(desk)):
            looks.note(what, f"{kind} ({size['width']} px, {scheme})")
        _picture(desk, kind, size, scheme)
        paths = paths or list(_admin_paths(desk))
    return paths


def _admin_paths(desk: Visitor) -> Iterator[str]:
    begins = f"{desk.base}/admin/"
    for address in desk.page.evaluate(_LINKS):
        path = address.removeprefix(desk.base).partition("#")[0].partition("?")[0]
        if address.startswith(begins) and path.endswith("/") and not path.endswith(_ACTS):
            yield path


def _faults_of_width(desk: Visitor) -> list[str]:
    wide: str = desk.page.evaluate(_TOO_WIDE)
    return [wide] if wide else []


def _violations(desk: Visitor) -> Iterator[str]:
    if not AXE.exists():
        assert not os.environ.get("CI"), "axe-core is missing: make web-modules"
        return
    for each in desk.page.evaluate(_RUN_AXE, RULES):
        why = " ".join(each["why"].split())[:200]
        yield f"{each['id']}: {_ID.sub('/ID', each['html'])[:300]} {why}"


def _picture(desk: Visitor, kind: str, size: dict[str, int], scheme: str) -> None:
    if folder := os.environ.get("ADMIN_PICTURES"):
        name = f"{kind.strip('/').replace('/', '-')}-{size['width']}-{scheme}.png"
        desk.page.screenshot(path=Path(folder) / name)


def test_every_table_has_its_pages(looks):
    assert get_resolver().url_patterns, "the URLconf registers the pages"
    for model, pages in admin.site._registry.items():
        at = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        row = [] if pages.list_display_links is None else [f"{at}ID/change/"]
        assert {at, *row} <= set(looks.pages), at


def test_every_page_fits_and_axe_finds_nothing(looks):
    assert not looks.wrong, str(looks)


def test_the_pages_of_signing_in_fit_and_axe_finds_nothing(desk, stranger, operator):
    seen = Looks({"sign-in": "/identity/sign-in", "admin-login": "/admin/login/"})
    for kind in seen.pages:
        _look(stranger, kind, seen)
    let_in = Looks({"consent": _consent_path(operator)})
    _look(desk, "consent", let_in)
    assert not seen.wrong | let_in.wrong, f"{seen}\n{let_in}"
