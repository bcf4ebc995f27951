"""The web page's files: published under names that hold their content, vendored as listed, small, and
no address of the page unknown to the server."""

import base64
import gzip
import hashlib
import json
import os
import re
import runpy
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from amber.web import page
from amber.web.page_files import KEPT_SECONDS, PublishedFiles, publish_files, remove_old_files

pytestmark = pytest.mark.django_db

WEB = settings.BASE_DIR / "web"
MOST_FIRST_BYTES = 120_000


@pytest.fixture
def document(db: None) -> str:
    return Client().get("/").content.decode()


def body_of(answer: Any) -> bytes:
    """What a file's answer streams."""
    return b"".join(answer.streaming_content)


def addresses(document: str) -> list[str]:
    return re.findall(r'(?:href|src)="(/static/[^"]+)"', document)


def test_every_file_of_the_page_is_served_compressed_and_for_good(document):
    found = addresses(document)
    assert len(found) > 20
    for address in found:
        answer = Client().get(address, headers={"Accept-Encoding": "gzip"})
        content = body_of(answer)
        assert answer.status_code == 200
        assert "immutable" in answer["Cache-Control"], address
        assert answer["Content-Encoding"] == "gzip"
        assert re.search(
            rf"\.{hashlib.sha256(gzip.decompress(content)).hexdigest()[:12]}\.", address
        )


def test_the_first_view_is_small(document):
    sizes = {
        address: len(body_of(Client().get(address, headers={"Accept-Encoding": "gzip"})))
        for address in set(addresses(document))
    }
    first = Client().get("/", headers={"Accept-Encoding": "gzip"})
    assert first["Content-Encoding"] == "gzip"
    whole = sum(sizes.values()) + len(first.content)
    assert whole <= MOST_FIRST_BYTES, (whole, sizes)


def test_the_import_map_leads_to_files_that_are_there(document):
    (text,) = re.findall(r'<script type="importmap">(.*?)</script>', document)
    imports = json.loads(text)["imports"]
    assert imports["/static/web/app/main.js"] in document
    for address in imports.values():
        answer = Client().get(address)
        answer.close()
        assert answer.status_code == 200, address


def test_the_policy_allows_the_import_map_and_no_other_text(document):
    policy = Client().get("/")["Content-Security-Policy"]
    (text,) = re.findall(r'<script type="importmap">(.*?)</script>', document)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    (scripts,) = re.findall(r"script-src ([^;]+)", policy)
    assert scripts == f"'self' 'sha256-{digest}'"
    assert "unsafe" not in policy
    assert not re.search(r"<style| style=| on\w+=", document)


def test_published_again_is_published_alike(tmp_path):
    first = publish_files(WEB, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert publish_files(WEB, tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_style_sheets_name_published_fonts(tmp_path):
    files = publish_files(WEB, tmp_path)
    css = (
        tmp_path / files.addresses["vendor/katex/katex.css"].removeprefix("/static/web/")
    ).read_text()
    named = set(re.findall(r"url\((/[^)]+\.woff2)\)", css))
    assert named == {at for path, at in files.addresses.items() if path.endswith(".woff2")}


def test_vendored_files_are_those_that_are_listed():
    listed = json.loads((WEB / "vendor" / "integrity.json").read_text())
    there = {
        path.relative_to(WEB / "vendor").as_posix()
        for path in (WEB / "vendor").rglob("*")
        if path.is_file() and path.suffix in {".js", ".css", ".woff2"}
    }
    assert there == set(listed["files"])
    for name, integrity in listed["files"].items():
        digest = hashlib.sha384((WEB / "vendor" / name).read_bytes()).digest()
        assert integrity == f"sha384-{base64.b64encode(digest).decode()}", name
    wanted = json.loads((WEB / "package.json").read_text())["dependencies"]
    assert wanted == {name: each["version"] for name, each in listed["packages"].items()}
    licences = {path.stem for path in (WEB / "vendor" / "licences").iterdir()}
    assert {name.replace("@", "").replace("/", "-") for name in wanted} <= licences


def test_the_server_knows_every_address_of_the_page():
    routes = (WEB / "app" / "routes.js").read_text()
    begins = {found.split("/")[1] for found in re.findall(r'path: "([^"]+)"', routes)} - {""}
    assert begins <= set(page.PLACES)
    for place in begins:
        assert Client().get(f"/{place}/x").status_code == 200
    assert Client().get("/nowhere/x").status_code == 404


def test_a_person_who_goes_astray_sees_a_page_and_a_program_an_error():
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    astray = Client().get("/nowhere/x", headers=browser)
    assert astray.status_code == 404
    assert astray["Content-Type"].startswith("text/html")
    assert "script-src" in astray["Content-Security-Policy"]
    for path, headers in (
        ("/nowhere/x", {}),
        ("/nowhere/x", {"Accept": "*/*"}),
        ("/api/v1/nowhere/", browser),
        ("/static/nowhere.js", browser),
    ):
        answer = Client().get(path, headers=headers)
        assert answer.status_code == 404
        assert "text/html" not in answer["Content-Type"] or path.startswith("/static/")
    assert Client().post("/nowhere/x", headers=browser)["Content-Type"] == "application/json"


def test_the_widget_s_languages_have_the_same_words():
    source = (WEB / "widget" / "amber-widget.js").read_text()
    texts = source[source.index("const WORDS") : source.index("const asked")]
    languages = re.findall(r"^\t\t(\w\w): \{\n(.*?)^\t\t\},", texts, re.MULTILINE | re.DOTALL)
    words = {
        name: set(
            re.findall(
                r"(?:^\t+|, )(\w+): [\"(]", re.sub(r"errors: \{[^}]*\}", "", text), re.MULTILINE
            )
        )
        for name, text in languages
    }
    assert set(words) == {"en", "de", "zh"}
    assert words["de"] == words["zh"] == words["en"]
    assert "placeholder" in words["en"]


def test_languages_have_the_same_words():
    keys = {
        path.name: re.findall(r'"((?:\w|[.-])+)":\s*(?:"|\{)', path.read_text())
        for path in (WEB / "locales").glob("*.js")
    }
    english = keys.pop("en.js")
    assert len(english) == len(set(english))
    for name, found in keys.items():
        assert set(found) == set(english), name


def test_words_stand_in_the_catalogue_alone():
    english = set(
        re.findall(r'"((?:\w|[.-])+)":\s*(?:"|\{)', (WEB / "locales" / "en.js").read_text())
    )
    for folder in ("app", "components", "pages"):
        for path in (WEB / folder).glob("*.js"):
            used = set(re.findall(r'\bt\(\s*"([^"]+)"', path.read_text()))
            assert used <= english, path


def test_the_widget_is_made_of_its_parts():
    made = runpy.run_path(str(WEB / "scripts" / "widget.py"))["assemble"]()
    assert (settings.BASE_DIR / "public_api" / "static" / "amber-widget.js").read_text() == made
    assert len(made.encode()) < 27_000  # of which each of its three languages takes 1,500


# -- Old files -------------------------------------------------------------------------------------


class Releases:
    """Releases of the page that start one after another on one folder, each with one style sheet."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = folder / "source", folder / "web"

    def start(self, css: str) -> Path:
        """Start a release; return its file."""
        for name in ("app/main.js", "styles/a.css"):
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(css if name.endswith("css") else "")
        published = publish_files_of(self.source, self.target)
        remove_old_files(published, self.target)
        return self.target / published.addresses["styles/a.css"].removeprefix("/static/web/")

    def wait(self, seconds: float) -> None:
        """Make all files older by so much."""
        for path in self.target.rglob("*.*"):
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))


def publish_files_of(source: Path, target: Path) -> PublishedFiles:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("amber.web.page_files.BARE_NAMES", {})
        return publish_files(source, target)


@pytest.fixture
def releases(tmp_path):
    return Releases(tmp_path)


def test_files_of_an_older_release_go_when_no_page_needs_them_any_more(releases):
    old = releases.start("p { color: red }")
    releases.wait(3 * KEPT_SECONDS)
    new = releases.start("p { color: blue }")
    assert old.exists()  # it was used until now
    assert abs(old.stat().st_mtime - time.time()) < 600
    releases.wait(KEPT_SECONDS / 2)
    releases.start("p { color: blue }")
    assert old.exists()
    releases.wait(KEPT_SECONDS)
    releases.start("p { color: blue }")
    assert new.exists()
    assert not old.exists()
    assert not old.with_name(f"{old.name}.gz").exists()


def test_a_release_that_comes_back_keeps_its_files(releases):
    old = releases.start("p { color: red }")
    releases.start("p { color: blue }")
    releases.start("p { color: red }")
    releases.wait(3 * KEPT_SECONDS)
    releases.start("p { color: red }")
    assert old.exists()


def test_files_of_releases_that_kept_no_record_stay_for_now(releases):
    old = releases.start("p { color: red }")
    releases.wait(3 * KEPT_SECONDS)
    releases.target.with_name("web-files.json").unlink()
    releases.start("p { color: blue }")
    assert old.exists()
    releases.wait(2 * KEPT_SECONDS)
    releases.start("p { color: blue }")
    assert not old.exists()


@pytest.mark.parametrize("damaged", ["", "5", "[[]]", "\x00"])
def test_a_damaged_record_counts_as_none(releases, damaged):
    old = releases.start("p { color: red }")
    releases.wait(3 * KEPT_SECONDS)
    releases.target.with_name("web-files.json").write_text(damaged)
    releases.start("p { color: blue }")
    assert old.exists()
