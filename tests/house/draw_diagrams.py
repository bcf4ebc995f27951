"""Draw the Mermaid diagrams of docs as pictures, in light and in dark: `make diagrams`.

Each picture names the digest of its source, by which the site knows whether it is current. A picture
without a diagram is removed.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from amber.docs_site.hooks import FOLDER, SCHEMES, Diagram, diagrams_of, is_drawn
from tests.e2e.kit.browser import chromium

DOCS: Final = FOLDER.parent
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {
        "primaryColor": "#fbeedb",
        "primaryBorderColor": "#91866f",
        "primaryTextColor": "#26211a",
        "lineColor": "#5d5445",
        "textColor": "#26211a",
        "clusterBkg": "#f3efe7",
        "clusterBorder": "#e3dccf",
        "titleColor": "#26211a",
        "edgeLabelBackground": "#fbf9f5",
        "noteBkgColor": "#ffe3a3",
        "noteTextColor": "#26211a",
    },
    "dark": {
        "primaryColor": "#3a2a14",
        "primaryBorderColor": "#85796a",
        "primaryTextColor": "#efe8dc",
        "lineColor": "#b5aa99",
        "textColor": "#efe8dc",
        "clusterBkg": "#221e1a",
        "clusterBorder": "#38322b",
        "titleColor": "#efe8dc",
        "edgeLabelBackground": "#191613",
        "noteBkgColor": "#6b4a0c",
        "noteTextColor": "#efe8dc",
    },
}
DRAW: Final = """
async ([name, source, themeVariables]) => {
  mermaid.initialize({
    startOnLoad: false, theme: "base", themeVariables, fontFamily: "system-ui, sans-serif",
    htmlLabels: false, flowchart: { htmlLabels: false }, deterministicIds: true,
    sequence: { actorMargin: 12, width: 130, height: 44, messageMargin: 26, diagramMarginX: 4, mirrorActors: false,
      messageFontSize: 19, actorFontSize: 19, noteFontSize: 17, boxMargin: 6 },
  });
  return (await mermaid.render(name, source)).svg;
}
"""


def main(script: str) -> int:
    pages = sorted(DOCS.glob("*.md"))
    diagrams = [each for page in pages for each in diagrams_of(page.read_text(), page.stem)]
    FOLDER.mkdir(exist_ok=True)
    wanted = [each for each in diagrams if not is_drawn(each)]
    if wanted:
        _draw(wanted, Path(script))
    current = {each.picture(scheme) for each in diagrams for scheme in SCHEMES}
    left_over = set(FOLDER.glob("*.svg")) - current
    for picture in left_over:
        picture.unlink()
    sys.stdout.write(f"Drew {len(wanted)} of {len(diagrams)} diagrams: the others were current.\n")
    for picture in sorted(left_over):
        sys.stdout.write(f"Removed {picture.name}, which no diagram has any more.\n")
    return 0


def _draw(diagrams: list[Diagram], script: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.set_content("<!DOCTYPE html><body></body>")
        page.add_script_tag(content=script.read_text())
        for diagram in diagrams:
            for scheme, looks in LOOKS.items():
                svg = page.evaluate(DRAW, [diagram.name, diagram.source, looks])
                diagram.picture(scheme).write_text(_finished(svg, diagram))


def _finished(svg: str, diagram: Diagram) -> str:
    """Return the picture with a size of its own, as an image needs it, and with its source's digest."""
    found = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', svg)
    assert found is not None, json.dumps(diagram.name)
    width, height = (round(float(each)) for each in found.groups())
    svg = re.sub(r' width="100%"| style="max-width:[^"]*"', "", svg, count=2)
    svg = svg.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
    return f"<!-- drawn from {diagram.digest} -->\n{svg}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
