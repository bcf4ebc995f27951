"""Find the Mermaid diagrams of a page, and tell whether docs/diagrams has their pictures.

Readers of the repository see the diagrams drawn by what shows the Markdown. The site shows pictures
that `make diagrams` drew, since it loads no script that could draw; each names the source that it
was drawn from.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amber.docs_site.place import ROOT

FOLDER: Final = ROOT / "docs" / "diagrams"
SCHEMES: Final = ("light", "dark")
_OPENS: Final = "```mermaid\n"


@dataclass(frozen=True, slots=True)
class Diagram:
    name: str
    title: str
    """What it stands for where it cannot be seen: the heading it stands under."""

    source: str
    fence: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()

    def picture(self, scheme: str) -> Path:
        return FOLDER / f"{self.name}-{scheme}.svg"


def diagrams_of(markdown: str, page: str) -> Iterator[Diagram]:
    before, *parts = f"\n{markdown}".split(f"\n{_OPENS}")
    for number, part in enumerate(parts, start=1):
        source, _, after = part.partition("\n```\n")
        fence = f"{_OPENS}{source}\n```"
        yield Diagram(f"{page}-{number}", _title(before, page), f"{source}\n", fence)
        before += after


def _title(before: str, page: str) -> str:
    """Return the last heading that stands before the diagram."""
    headings = [line.lstrip("# ") for line in before.split("\n") if line.startswith("#")]
    return f"Diagram: {headings[-1] if headings else page}"


def is_drawn(diagram: Diagram) -> bool:
    """Return whether both pictures are there and were drawn from this source."""
    paths = [diagram.picture(scheme) for scheme in SCHEMES]
    return all(path.exists() and diagram.digest in path.read_text() for path in paths)
