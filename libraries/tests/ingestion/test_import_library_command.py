"""`manage.py import_library`: a folder or a local repository into a library."""

import time
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from libraries.models import Document
from libraries.tests.enqueued import enqueued
from libraries.tests.git_server import Repository as GitRepository
from libraries.tests.ledger import ingest

__all__ = ["enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def worker(enqueued, monkeypatch):
    """Works whenever the command waits."""
    monkeypatch.setattr(time, "sleep", lambda _: ingest())
    return enqueued


@pytest.fixture
def folder(tmp_path):
    files = {"a.md": "# A\n\nText.", "docs/b.txt": "More.", "drafts/c.txt": "Not yet."}
    root = tmp_path / "manuals"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (root / "link.txt").symlink_to("/etc/passwd")
    return root


def run(library: Any, folder: Any, *arguments: str) -> str:
    out = StringIO()
    call_command("import_library", str(library.pk), str(folder), *arguments, stdout=out)
    return out.getvalue()


def paths() -> list[str | None]:
    return list(Document.objects.order_by("path").values_list("path", flat=True))


def test_a_folder_is_imported_and_waited_for(library, folder):
    said = run(library, folder, "--exclude", "drafts")
    assert paths() == ["a.md", "docs/b.txt"]
    assert set(Document.objects.values_list("status", flat=True)) == {"ready"}
    assert "2 new" in said
    assert "1 skipped (binary)" in said
    assert "1 skipped (link)" in said
    assert said.splitlines()[-1] == "2 ready"


def test_again_only_changes_are_taken(library, folder):
    run(library, folder)
    (folder / "a.md").write_text("# A\n\nOther text.")
    said = run(library, folder, "--include", "*.md", "--include", "docs")
    assert "1 replaced, 1 same" in said


def test_a_prefix_stands_in_front(library, folder):
    run(library, folder, "--include", "*.md", "--prefix", "/manuals/")
    assert paths() == ["manuals/a.md"]


def test_without_waiting_the_workers_do_the_rest(library, folder, worker):
    run(library, folder, "--no-wait")
    assert set(Document.objects.values_list("status", flat=True)) == {"queued"}
    assert "libraries.ingest" in worker


def test_a_commit_of_a_local_repository_is_imported(library, tmp_path):
    source = GitRepository(tmp_path / "source")
    source.commit({"a.txt": "first"})
    source.tag("v1")
    source.commit({"a.txt": "second", "b.txt": "new"})
    run(library, source.folder, "--ref", "v1")
    assert paths() == ["a.txt"]
    assert Document.objects.get().text == "first"
    run(library, source.folder, "--ref", "main")
    assert paths() == ["a.txt", "b.txt"]


def test_a_document_that_cannot_be_read_makes_it_fail(library, folder, capsys):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    with pytest.raises(CommandError, match="Not everything"):
        run(library, folder)
    assert "broken.pdf: The PDF is damaged" in capsys.readouterr().err


def test_what_is_not_there_is_told(library, folder, tmp_path):
    with pytest.raises(CommandError, match="no folder"):
        run(library, tmp_path / "nowhere")
    with pytest.raises(CommandError, match="no Git repository"):
        run(library, folder, "--ref", "main")
    with pytest.raises(CommandError, match="no library with this id"):
        call_command("import_library", "0" * 32, str(folder))
