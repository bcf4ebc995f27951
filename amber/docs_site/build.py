"""Build the site of the docs: `python -m amber.docs_site.build`, without a network.

Builds into the var directory unless the site of these docs is there already; with `--check` it only
tries, and a link or an anchor that leads nowhere fails. A site appears whole or not at all. Beside its
pages lies a list of the inline scripts that its policy may allow.
"""

import argparse
import base64
import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amber.docs_site.place import POLICY_FILE, ROOT, find_site, site_in_image, site_in_var

DRAFT: Final = ".draft-"
COMPRESSED: Final = frozenset({".html", ".js", ".css", ".json", ".svg", ".xml"})
_INLINE_SCRIPT: Final = re.compile(
    r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL
)
_NEVER_RUN: Final = re.compile(r"\bsrc=|application/json")
_LEFT_OUT: Final = ("404.html", "sitemap.xml", "sitemap.xml.gz")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the site of the docs.")
    parser.add_argument("--check", action="store_true", help="only try it, strictly")
    parser.add_argument("--in-image", action="store_true", help="build beside the code")
    parser.add_argument("--yielding", action="store_true", help="leave the processor to others")
    chosen = parser.parse_args(arguments)
    if chosen.yielding:
        os.nice(19)
    var = Path(os.environ.get("AMBER_VAR_DIR") or ROOT / "var")
    if chosen.check:
        with tempfile.TemporaryDirectory() as folder:
            build_site(Path(folder) / "site", strict=True)
    elif not find_site(var):
        target = site_in_image() if chosen.in_image else site_in_var(var)
        build_site(target)
        _remove_others(target)
    return 0


def build_site(target: Path, *, strict: bool = False) -> None:
    """Build the site as the folder `target`. Takes a second or two of CPU.

    Raises SystemExit if it is strict and a page is not as it should be.
    """
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement of the theme's authors
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=target.parent))
    try:
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(draft), strict=strict)
        build(config)
        _finish(draft)
        with contextlib.suppress(OSError):  # another process was faster: its site is the same
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _finish(site: Path) -> None:
    """Write the list of inline scripts, and every text file compressed beside itself."""
    for name in _LEFT_OUT:
        (site / name).unlink(missing_ok=True)
    hashes = {expression for page in site.rglob("*.html") for expression in _script_hashes(page)}
    (site / POLICY_FILE).write_text(json.dumps({"script-src": sorted(hashes)}))
    for path in sorted(site.rglob("*")):
        if path.suffix in COMPRESSED and path.name != POLICY_FILE:
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
            path.with_name(f"{path.name}.gz").write_bytes(packed)
    site.chmod(0o755)


def _script_hashes(page: Path) -> list[str]:
    """Return the source expressions that allow exactly the inline scripts of this page."""
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(found['code'].encode()).digest()).decode()}'"
        for found in _INLINE_SCRIPT.finditer(page.read_text())
        if not _NEVER_RUN.search(found["attributes"])
    ]


def _remove_others(site: Path) -> None:
    """Remove the sites of other docs beside this one."""
    for other in site.parent.iterdir():
        if other != site and not other.name.startswith(DRAFT):
            shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
