"""Fit the Markdown of the repository to the site; mkdocs calls the functions `on_…` by their names.

The pages are written for readers of the repository. Here links between them become links of the
site, files that are no pages become plain names, and Mermaid becomes the pictures in docs/diagrams that
`make diagrams` drew, since the site loads no script that could draw; each names the source that it was drawn from.
The search knows words by their spaces only, so what is written in Chinese is added to its index.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from amber.docs_site.place import OTHER_PAGES, ROOT

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


ICON: Final = ROOT / "web" / "styles" / "icon.svg"

_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<to>[^()\s#]*)(?P<anchor>#[^()\s#]*)?\)"
)
_HTML_ADDRESS: Final = re.compile(r"(?P<name>\b(?:src|srcset)=\")(?P<to>[^\":]+)(?=\")")
_CHINESE: Final = re.compile(r"[\u3400-\u9fff]+")


def slugify(heading: str, separator: str) -> str:
    """Return the anchor of a heading as GitHub makes it, which the pages' links are written for."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_config(config: Any) -> Any:
    config.mdx_configs["toc"] = {"slugify": slugify, "permalink": "#", "permalink_title": "Link"}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/."""
    from mkdocs.structure.files import File

    for path, name in OTHER_PAGES.items():
        if (ROOT / path).exists():
            files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    files.append(File.generated(config, "assets/icon.svg", content=ICON.read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    origins = {name: path for path, name in OTHER_PAGES.items()}
    origin = origins.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    markdown = _with_pictures(markdown, Path(page.file.src_uri).stem)
    text_and_code = _split_by_code(markdown)
    text_and_code[::2] = [_with_links_of_site(part, origin) for part in text_and_code[::2]]
    if page.file.url:  # not the first page: each of the others has a folder of its own
        text_and_code[::2] = [
            _HTML_ADDRESS.sub(r"\g<name>../\g<to>", part) for part in text_and_code[::2]
        ]
    return "".join(text_and_code)


def _split_by_code(markdown: str) -> list[str]:
    """Return text and blocks of code by turns, the text first."""
    parts = [""]
    for line in markdown.splitlines(keepends=True):
        is_fence = line.lstrip().startswith("```")
        is_in_code = len(parts) % 2 == 0
        if is_fence and not is_in_code:
            parts.append(line)
        else:
            parts[-1] += line
            if is_fence:
                parts.append("")
    return parts


def on_post_build(config: Any) -> None:
    """Make every stretch of Chinese a tag of its section, from each of its characters on: what is asked
    for is the beginning of one of them. amber.css hides these tags."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    found = json.loads(index.read_text())
    for entry in found["docs"]:
        runs = _CHINESE.findall(f"{entry['title']} {entry['text']}")
        if tags := sorted({run[start:] for run in runs for start in range(len(run))}):
            entry["tags"] = tags
    index.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")))


def _with_pictures(markdown: str, page: str) -> str:
    """Replace each diagram by its pictures; one without a current picture stays as its source."""
    for diagram in diagrams_of(markdown, page):
        if is_drawn(diagram):
            markdown = markdown.replace(diagram.fence, _pictures(diagram))
    return markdown


def _pictures(diagram: Diagram) -> str:
    return "".join(
        f"![{diagram.title}](diagrams/{diagram.name}-{scheme}.svg#only-{scheme})"
        for scheme in ("light", "dark")
    )


def _with_links_of_site(text: str, origin: str) -> str:
    text = _HTML_ADDRESS.sub(lambda found: found["name"] + _address(found["to"], origin), text)
    return _LINK.sub(lambda found: _link(found, origin), text)


def _link(found: re.Match[str], origin: str) -> str:
    to, text = found["to"], found["text"]
    if not to or ":" in to:
        return found[0]
    target = _in_repository(to, origin)
    is_page = target in OTHER_PAGES or target.startswith("docs/")
    if not is_page and (ROOT / target).exists():
        return f"`{target}`" if text.strip("`") in (target, to) else f"{text} (`{target}`)"
    return f"{found['image']}[{text}]({_address(to, origin)}{found['anchor'] or ''})"


def _address(to: str, origin: str) -> str:
    """Return where the site has this file: every page lies at its root."""
    target = _in_repository(to, origin)
    return OTHER_PAGES.get(target, target.removeprefix("docs/"))


def _in_repository(to: str, origin: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), to))
