"""The site of the docs: built strictly of these pages, and served as it was built."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from django.test import Client
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from amber.docs_site import place
from amber.docs_site.build import build_site
from amber.docs_site.hooks import FOLDER, SCHEMES, diagrams_of, is_drawn, on_page_markdown
from amber.docs_site.place import ROOT
from amber.web import docs_pages
from amber.web.openapi_texts import INTRODUCTION
from tests.house import draw_diagrams

INDEX = "search/search_index.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strictly: a link, an anchor or an omitted page would fail here."""
    target: Path = tmp_path_factory.mktemp("site") / "site"
    build_site(target, strict=True)
    return target


@pytest.fixture
def site(built, monkeypatch):
    monkeypatch.setattr(docs_pages, "site_to_serve", lambda var: built)
    return Client()


def test_a_link_that_leads_nowhere_fails_the_strict_build(tmp_path, caplog):
    docs = shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (docs / "audit.md").open("a") as page:
        page.write("\n[lost](budgets.md#no-such-heading) [gone](no-such-page.md)\n")
    config = load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(tmp_path / "s"), strict=True
    )
    with pytest.raises(Abort):
        build(config)
    assert "no-such-heading" in caplog.text
    assert "no-such-page.md" in caplog.text


def test_every_page_is_served(site, built):
    for path in ("", *(f"{page.stem}/" for page in (ROOT / "docs").glob("*.md"))):
        if path != "README/":
            assert site.get(f"/docs/{path}").status_code == 200, path
    assert b"What Amber is" in site.get("/docs/").content
    assert site.get("/docs/budgets")["Location"] == "/docs/budgets/"
    assert site.get("/docs")["Location"] == "/docs/"


def test_nothing_else_is_served(site):
    for path in (
        "policy.json",
        "../mkdocs.yml",
        "%2e%2e/mkdocs.yml",
        "nowhere/",
        "search",
        "404.html",
    ):
        assert site.get(f"/docs/{path}").status_code in (301, 404), path
    assert site.post("/docs/").status_code == 405


def test_browsers_ask_for_pages_and_keep_what_is_named_by_its_content(site, built):
    page = site.get("/docs/budgets/")
    again = site.get("/docs/budgets/", headers={"If-None-Match": page["ETag"]})
    script = next(built.glob("assets/javascripts/bundle.*.min.js"))
    kept = site.get(f"/docs/assets/javascripts/{script.name}")
    assert page["Cache-Control"] == "public, no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in kept["Cache-Control"]
    # The browser puts the policy of a 304 in the place of the one that it has kept.
    assert again["Content-Security-Policy"] == page["Content-Security-Policy"]


def test_what_is_compressed_is_the_same(site):
    plain = site.get("/docs/budgets/")
    packed = site.get("/docs/budgets/", headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert "Accept-Encoding" in packed["Vary"]


def test_pages_may_run_what_the_build_listed_and_load_nothing_from_elsewhere(site, built):
    policy = site.get("/docs/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    for expression in json.loads((built / "policy.json").read_text())["script-src"]:
        assert expression in policy
    for page in built.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert not loaded, page


def test_search_knows_chinese_words(built):
    entries = json.loads((built / INDEX).read_text())["docs"]
    tagged = {entry["location"] for entry in entries if "忘了" in entry.get("tags", ())}
    assert any(location.startswith("memory/") for location in tagged)


def test_while_there_is_no_site_a_page_says_so_and_loads_itself_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "site_in_image", lambda: tmp_path / "none")
    assert place.site_to_serve(tmp_path) is None
    monkeypatch.setattr(docs_pages, "site_to_serve", lambda var: None)
    answer = Client().get("/docs/budgets/")
    assert answer.status_code == 503
    assert 'http-equiv="refresh"' in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"


def test_the_site_of_other_docs_is_served_until_theirs_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "site_in_image", lambda: tmp_path / "none")
    for name in ("0123", ".draft-1", "no-site"):
        (tmp_path / "docs" / name).mkdir(parents=True)
    for name in ("0123", ".draft-1"):
        (tmp_path / "docs" / name / "policy.json").touch()
    assert place.site_to_serve(tmp_path) == tmp_path / "docs" / "0123"
    place.site_in_var(tmp_path).mkdir()
    assert place.site_to_serve(tmp_path) == place.site_in_var(tmp_path)


def test_a_change_of_the_docs_asks_for_another_site(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    monkeypatch.setattr(place, "ROOT", tmp_path)
    digests = []
    for text in ("one", "two", "one"):
        page.write_text(text)
        digests.append(place.sources_digest.__wrapped__())
    assert digests[0] == digests[2] != digests[1]


def test_the_introduction_of_the_api_leads_to_pages_of_the_site(site):
    named = re.findall(r"\]\((/docs/[^)#]*)", INTRODUCTION)
    assert len(named) > 3
    for path in named:
        assert site.get(path).status_code == 200, path


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_diagram_has_its_pictures(page):
    """`make diagrams` draws those that are missing here."""
    drawn = {
        diagram.name: is_drawn(diagram) for diagram in diagrams_of(page.read_text(), page.stem)
    }
    assert all(drawn.values()), drawn


def test_drawing_says_what_was_drawn(capsys):
    pictures = {path: path.read_bytes() for path in FOLDER.glob("*.svg")}
    assert draw_diagrams.main("a script that nothing needs") == 0
    count = len(pictures) // len(SCHEMES)
    assert capsys.readouterr().out == f"Drew 0 of {count} diagrams: the others were current.\n"
    assert pictures == {path: path.read_bytes() for path in FOLDER.glob("*.svg")}


class _File:
    def __init__(self, src_uri: str) -> None:
        self.src_uri, self.url = src_uri, src_uri.removesuffix(".md") + "/"


class _Page:
    def __init__(self, src_uri: str) -> None:
        self.file = _File(src_uri)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](docs/tools.md#b)", "[a](tools.md#b)"),
        ("[a](CONTRIBUTING.md)", "[a](contributing.md)"),
        ("[`amber/up.py`](amber/up.py)", "`amber/up.py`"),
        ("[how](amber/up.py)", "how (`amber/up.py`)"),
        ("[a](https://example.com/docs/tools.md)", "[a](https://example.com/docs/tools.md)"),
        ("[a](#b)", "[a](#b)"),
        ("```sh\n[a](docs/tools.md)\n```", "```sh\n[a](docs/tools.md)\n```"),
        ('<img src="docs/widget.png">', '<img src="../widget.png">'),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(written, shown):
    assert on_page_markdown(written, page=_Page("readme.md")) == shown
