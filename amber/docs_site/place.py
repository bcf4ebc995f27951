"""Say where the built site of the docs lies.

Its folder is named by a digest of what it is made of, so a site of other docs is never served and is
built anew by itself. An image of containers has one beside the code; elsewhere it lies in the var
directory. This module loads neither Django nor mkdocs.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
POLICY_FILE: Final = "policy.json"
"""What a site's pages may run, beside them: the build lists it, the web process keeps to it."""

OTHER_PAGES: Final = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "web/README.md": "web-page.md",
    "examples/tools/README.md": "tool-service.md",
}
"""Pages of the site that lie outside docs/, by their path in the repository."""

_SOURCES: Final = ("mkdocs.yml", *OTHER_PAGES, "docs", "amber/docs_site", "web/styles/icon.svg")


def site_in_image() -> Path:
    """Return the folder that an image of containers has its site in."""
    return ROOT / "docs-site" / sources_digest()


def site_in_var(var: Path) -> Path:
    return var / "docs" / sources_digest()


def find_site(var: Path) -> Path | None:
    """Return the folder of the site of these docs, or None while there is none."""
    return next((site for site in (site_in_image(), site_in_var(var)) if site.is_dir()), None)


def site_to_serve(var: Path) -> Path | None:
    """Return the site of these docs, or the newest of other docs while theirs is not built."""
    return find_site(var) or max(_sites_in(var), key=_built_at, default=None)


def _sites_in(var: Path) -> list[Path]:
    return [policy.parent for policy in (var / "docs").glob(f"[!.]*/{POLICY_FILE}")]


def _built_at(site: Path) -> float:
    return (site / POLICY_FILE).stat().st_mtime


@cache
def sources_digest() -> str:
    """Return a digest of the docs and of what shows them. Reads some megabytes, once."""
    digest = hashlib.sha256()
    for path in _source_files():
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _source_files() -> Iterator[Path]:
    for source in _SOURCES:
        path = ROOT / source
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (each for each in found if each.is_file() and each.suffix != ".pyc")
