"""Find the Mermaid diagrams of a page, and tell whether docs/diagrams has their pictures.

Readers of the repository see the diagrams drawn by what shows the Markdown. The site shows pictures
that `make diagrams` drew, since it loads no script that could draw; each names the source that it
was drawn from.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amber.docs_site.place import ROOT

FOLDER: Final = ROOT / "docs" / "diagrams"
SCHEMES: Final = ("light", "dark")
_DIAGRAM: Final = re.compile(r"^```mermaid\n(?P<source>.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


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
    for number, found in enumerate(_DIAGRAM.finditer(markdown), start=1):
        title = (_HEADING.findall(markdown, 0, found.start()) or [page])[-1]
        yield Diagram(f"{page}-{number}", f"Diagram: {title}", found["source"], found[0])


def is_drawn(diagram: Diagram) -> bool:
    """Return whether both pictures are there and were drawn from this source."""
    paths = [diagram.picture(scheme) for scheme in SCHEMES]
    return all(path.exists() and diagram.digest in path.read_text() for path in paths)
