"""axe-core over a page in the browser: WCAG 2.2 AA and what else is good practice."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    # What is right takes longer to describe, and to carry here, than to find.
    "resultTypes": ["violations"],
}
_VIOLATIONS = "async ([within, rules]) => (await axe.run(within, rules)).violations"


def assert_accessible(page: "Page", *, within: str = "html") -> None:
    """axe-core finds nothing in what the selector names, in light and in dark."""
    if not AXE.exists():
        assert not os.environ.get("CI"), "axe-core is missing: make web-modules"
        return
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        if not page.evaluate("Boolean(window.axe)"):
            page.evaluate(AXE.read_text())
        told = [
            (
                each["id"],
                each["help"],
                [(n["html"][:200], n["failureSummary"]) for n in each["nodes"]],
            )
            for each in page.evaluate(_VIOLATIONS, [within, RULES])
        ]
        assert not told, (scheme, told)
