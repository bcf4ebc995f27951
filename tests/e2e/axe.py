"""axe-core over a page in the browser: WCAG 2.2 AA and what else is good practice."""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE: Final = (
    Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
)
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RULES: Final = {
    "runOnly": TAGS,
    "resultTypes": ["violations"],
    # Stylesheets would be loaded once more for a rule that is in none of the TAGS.
    "preload": {"assets": ["media"]},
}


def violations(page: "Page", *, within: str = "html") -> list[dict[str, Any]]:
    """Return what axe-core finds in what the selector names; none where axe-core is not installed."""
    if not AXE.exists():
        assert not os.environ.get("CI"), "axe-core is missing: make web-modules"
        return []
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_source())
    run = "async ([within, rules]) => (await axe.run(within, rules)).violations"
    found: list[dict[str, Any]] = page.evaluate(run, [within, _RULES])
    return found


@cache
def _source() -> str:
    return AXE.read_text()


def assert_accessible(page: "Page", *, within: str = "html") -> None:
    """axe-core finds nothing in what the selector names, in light and in dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        told = [
            (
                each["id"],
                each["help"],
                [(n["html"][:200], n["failureSummary"]) for n in each["nodes"]],
            )
            for each in violations(page, within=within)
        ]
        assert not told, (scheme, told)
