"""Publish the files of the web page (the folder `web/`) under names that hold a hash of their content.

The browser keeps them for good. Modules name each other as they stand in the folder; an import map
leads these names to the published ones. Every web process does this when it starts: what is there
already stays, so several may do it at once, and pages of an older release find their files for
KEPT_SECONDS longer.
"""

import base64
import gzip
import hashlib
import json
import os
import posixpath
import re
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

PREFIX: Final = "/static/web/"
FOLDERS: Final = ("app", "components", "locales", "pages", "shared", "styles", "vendor")
ENDINGS: Final = frozenset({".js", ".css", ".woff2", ".svg"})
COMPRESSED: Final = frozenset({".js", ".css", ".svg"})

KEPT_SECONDS: Final = 30 * 86_400.0
"""How long the files of an older release stay: a page that stays open loads some of them on use."""

BARE_NAMES: Final = {
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "@preact/signals-core": "vendor/signals-core.js",
    "@preact/signals": "vendor/signals.js",
    "htm": "vendor/htm.js",
}
"""What modules import by a package's name, as the type checker knows it."""

_STATIC_IMPORT = re.compile(r"""\b(?:from|import)\s?["']([^"'\n]+)["']""")
_CSS_ADDRESS = re.compile(
    r"""(?P<comma>,?)url\(["']?(?!data:)(?P<file>[^)"']+)["']?\)(?P<form>\s*format\([^)]*\))?"""
)


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """The page's files by their path in `web/`, and what the page says about them."""

    addresses: dict[str, str]
    import_map: str
    preloads: tuple[str, ...]
    """Addresses of all modules that the first view needs, so that none waits for another."""

    @property
    def import_map_hash(self) -> str:
        """The source expression that lets a policy allow this one inline text."""
        digest = hashlib.sha256(self.import_map.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


class PageFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise has no types
    """Serve static files, and the page's from where they are published."""

    def __init__(self, get_response: Any = None) -> None:
        super().__init__(get_response, settings)
        publish()
        self.add_files(str(target_folder()), prefix=PREFIX)

    def immutable_file_test(self, path: str, url: str) -> bool:
        """Tell whether the name says what is in the file: ours, and what `collectstatic` has named."""
        return url.startswith(PREFIX) or bool(super().immutable_file_test(path, url))


def target_folder() -> Path:
    return Path(settings.AMBER_VAR_DIR) / "web"


def publish() -> PublishedFiles:
    """Write what is not there yet, and delete what no release needs; once a process, but each time with
    AMBER_DEBUG, so that a reload shows changes.

    Costs some milliseconds, at the first start a second.
    """
    return _publish.__wrapped__() if settings.DEBUG else _publish()


@cache
def _publish() -> PublishedFiles:
    published = publish_files(settings.BASE_DIR / "web", target_folder())
    remove_old_files(published, target_folder())
    return published


def publish_files(source: Path, target: Path) -> PublishedFiles:
    target.mkdir(parents=True, exist_ok=True)
    contents = {path: (source / path).read_bytes() for path in _paths(source)}
    addresses: dict[str, str] = {}
    # Style sheets name fonts, and so come after them.
    for path in sorted(contents, key=lambda each: each.endswith(".css")):
        if path.endswith(".css"):
            contents[path] = _with_addresses(contents[path], path, addresses)
        name = _name_by_content(path, contents[path])
        _put(target / name, contents[path])
        addresses[path] = PREFIX + name
    imports = {PREFIX + path: to for path, to in addresses.items() if path.endswith(".js")}
    imports |= {bare: addresses[path] for bare, path in BARE_NAMES.items()}
    first = _needed_by("app/main.js", contents)
    return PublishedFiles(
        addresses,
        json.dumps({"imports": imports}, separators=(",", ":")),
        tuple(addresses[path] for path in first),
    )


def remove_old_files(published: PublishedFiles, target: Path) -> None:
    """Delete files that belong to no release since KEPT_SECONDS.

    A file's time is that of its writing, so what the release before had gets that of the first start without it.
    """
    record = target.with_name(f"{target.name}-files.json")
    current = {address.removeprefix(PREFIX) for address in published.addresses.values()}
    before = _names_in(record)
    last_time = time.time() - KEPT_SECONDS
    for path in target.rglob("*.*"):
        name = path.relative_to(target).as_posix().removesuffix(".gz")
        if name in current or not path.is_file():
            continue
        with suppress(FileNotFoundError):  # another process was quicker
            if before is None or name in before:
                os.utime(path)
            elif path.stat().st_mtime < last_time:
                path.unlink()
    if before != current:
        _write_whole(record, json.dumps(sorted(current)).encode())


def _names_in(record: Path) -> set[str] | None:
    """Return the names of the files of the release that started last; None if that is not known."""
    try:
        return set(json.loads(record.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _paths(source: Path) -> list[str]:
    found = (path for folder in FOLDERS for path in (source / folder).rglob("*"))
    kept = (path for path in found if path.suffix in ENDINGS and path.is_file())
    return sorted(path.relative_to(source).as_posix() for path in kept)


def _name_by_content(path: str, content: bytes) -> str:
    stem, ending = posixpath.splitext(path)
    return f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}{ending}"


def _with_addresses(css: bytes, path: str, addresses: dict[str, str]) -> bytes:
    """Replace the files that a style sheet names; of a font's forms only the published stay."""

    def replacement(found: re.Match[str]) -> str:
        named = posixpath.normpath(posixpath.join(posixpath.dirname(path), found["file"]))
        if named not in addresses:
            return ""
        return f"{found['comma']}url({addresses[named]}){found['form']}"

    return _CSS_ADDRESS.sub(replacement, css.decode()).encode()


def _put(path: Path, content: bytes) -> None:
    """Write the file, compressed beside it, unless it is there: its name says what is in it."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # First: where the plain file is, the compressed one counts as written, too.
    if path.suffix in COMPRESSED:
        _write_whole(path.with_name(f"{path.name}.gz"), gzip.compress(content, 9, mtime=0))
    _write_whole(path, content)


def _write_whole(path: Path, content: bytes) -> None:
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(draft).chmod(0o644)
    Path(draft).rename(path)


def _needed_by(entry: str, contents: dict[str, bytes]) -> list[str]:
    """The module and all that it imports, not counting what is imported on use."""
    needed, waiting = [entry], [entry]
    while waiting:
        module = waiting.pop()
        for path in _imports_of(module, contents[module].decode()):
            if path not in needed:
                needed.append(path)
                waiting.append(path)
    return needed


def _imports_of(module: str, code: str) -> Iterable[str]:
    for name in _STATIC_IMPORT.findall(code):
        if name in BARE_NAMES:
            yield BARE_NAMES[name]
        elif name.startswith("."):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(module), name))
