"""Git repositories become documents: over a real server, with TLS; again and again."""

import threading
from typing import Any

import pytest

from amber.lib.workers.worker import Worker
from libraries import sweep
from libraries.git import import_threads, importing
from libraries.models import Document, DocumentChunk, Repository
from libraries.tests.git.served_repositories import (
    FILES,
    ask,
    claimed,
    imported,
    texts,
    work,
)
from libraries.tests.git_server import HAS_GIT, GitServer
from libraries.tests.ledger import ALL, assert_counted, ingest, new_document, new_library
from tests.fixtures.personas import api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("enqueued")]


def tally(repository: Any) -> dict[str, int]:
    names = ("new", "changed", "unchanged", "removed")
    return {name: repository.progress[name] for name in names if repository.progress[name]}


# -- What comes of it ------------------------------------------------------------------------------


@pytest.mark.parametrize("uses_git", [False, True], ids=["dulwich", "git"])
def test_files_become_documents_at_their_paths(
    bob, library, source, certificate, allowed, uses_git
):
    if uses_git and not HAS_GIT:
        pytest.skip("There is no git here.")
    head = source.commit(FILES)
    with GitServer(certificate, {"pumps.git": source}, uses_git=uses_git) as server:
        repository = imported(bob, library, server.url("pumps.git"))
        assert (repository.status, repository.error) == ("ready", "")
        assert repository.commit == head
        assert texts(library) == FILES
        document = Document.objects.get(path="src/pump.py")
        assert document.name == "pump.py"
        assert document.repository_id == repository.pk
        assert document.source == server.url("pumps.git")
        assert document.mime_type == "text/x-python"


def test_the_answer_says_how_it_goes_and_nothing_of_the_token(bob, library, server, enqueued):
    url = server.url("pumps.git")
    answer = ask(bob, library, url, ref="main", token="secret-token", include=["*.md"])
    assert answer.status_code == 202
    assert "libraries.import_repositories" in enqueued
    body = answer.json()
    assert (body["status"], body["ref"], body["has_token"]) == ("queued", "main", True)
    assert body["include"] == ["*.md"]
    assert "secret-token" not in answer.content.decode()
    assert "secret-token" not in Repository.objects.get().token_sealed
    work()
    [shown] = api(bob).get(f"{ALL}{library.pk}/import/").json()["results"]
    assert (shown["id"], shown["status"]) == (body["id"], "ready")
    assert shown["progress"] == {
        "step": "done",
        "new": 2,
        "changed": 0,
        "unchanged": 0,
        "removed": 0,
        "skipped": {},
        "refused": {},
    }


def test_only_what_changed_is_indexed_again_and_what_vanished_is_gone(bob, library, source, server):
    imported(bob, library, server.url("pumps.git"))
    texts(library)
    before = dict(Document.objects.values_list("path", "updated_at"))
    source.commit(
        {
            "README.md": FILES["README.md"],
            "docs/valve.md": "# Valves\n\nThe valve turns right.",
            "src/renamed.py": FILES["src/pump.py"],
        }
    )
    repository = imported(bob, library, server.url("pumps.git"))
    assert tally(repository) == {"new": 1, "changed": 1, "unchanged": 1, "removed": 1}
    found = texts(library)
    assert sorted(found) == ["README.md", "docs/valve.md", "src/renamed.py"]
    assert "turns right" in found["docs/valve.md"]
    assert Document.objects.get(path="README.md").updated_at == before["README.md"]
    assert not DocumentChunk.objects.filter(document__path="src/pump.py").exists()
    assert_counted(library)


def test_an_import_without_changes_touches_nothing(bob, library, server):
    imported(bob, library, server.url("pumps.git"))
    texts(library)
    before = set(Document.objects.values_list("pk", "updated_at"))
    repository = imported(bob, library, server.url("pumps.git"))
    assert tally(repository) == {"unchanged": 3}
    assert set(Document.objects.values_list("pk", "updated_at")) == before
    assert Repository.objects.count() == 1


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ({"include": ["*.md"]}, ["README.md", "docs/valve.md"]),
        ({"include": ["docs"]}, ["docs/valve.md"]),
        ({"exclude": ["/src/", "README.*"]}, ["docs/valve.md"]),
        ({"include": ["**/*.md"], "exclude": ["docs/*"]}, ["README.md"]),
    ],
    ids=["name", "folder", "exclude", "both"],
)
def test_patterns_choose_the_files(bob, library, server, patterns, expected):
    imported(bob, library, server.url("pumps.git"), **patterns)
    assert sorted(texts(library)) == expected


def test_what_is_no_longer_meant_is_removed(bob, library, server):
    imported(bob, library, server.url("pumps.git"))
    repository = imported(bob, library, server.url("pumps.git"), include=["*.md"])
    assert tally(repository) == {"unchanged": 2, "removed": 1}


def test_a_branch_a_tag_and_a_commit_can_be_named(bob, library, source, server):
    old = source.commit({"a.txt": "the first"})
    source.tag("v1")
    head = source.commit({"a.txt": "the second"})
    for ref, text, commit in [
        ("main", "the second", head),
        ("refs/heads/main", "the second", head),
        ("v1", "the first", old),
        (head, "the second", head),
    ]:
        repository = imported(bob, library, server.url("pumps.git"), ref=ref)
        assert (repository.status, repository.commit) == ("ready", commit), repository.error
        ingest()
        assert Document.objects.get(repository=repository).text == text
        Repository.objects.all().delete()


def test_what_is_no_document_is_counted_and_left_out(bob, library, source, server, settings):
    settings.AMBER_MAX_UPLOAD_BYTES = 1_000
    source.commit(
        {
            "a.txt": "text",
            "empty.txt": "",
            "logo.png": b"\x89PNG\r\n\x1a\n123",
            "data.bin": b"\0\1\2\3",
            "big.txt": "x" * 1_001,
            "wide.txt": "健康".encode("utf-16"),
        }
    )
    (source.folder / "link.txt").symlink_to("/etc/passwd")
    source.commit_all()
    repository = imported(bob, library, server.url("pumps.git"))
    assert texts(library) == {"a.txt": "text", "wide.txt": "健康"}
    assert repository.progress["skipped"] == {
        "binary": 2,
        "empty": 1,
        "link": 1,
        "too_large": 1,
    }


def test_a_path_that_another_document_has_gets_the_repositorys_name(bob, library, source, server):
    mine = new_document(library, "My own.", path="README.md")
    repository = imported(bob, library, server.url("pumps.git"))
    assert texts(library)["README.md"] == "My own."
    assert texts(library)["pumps/README.md"] == FILES["README.md"]
    assert tally(imported(bob, library, server.url("pumps.git"))) == {"unchanged": 3}
    assert Document.objects.filter(repository=repository).count() == 3
    mine.refresh_from_db()
    assert mine.repository_id is None


# -- Who may, and when -----------------------------------------------------------------------------


def test_members_who_only_read_a_library_may_not_import(alice, bob, server):
    shared = new_library(alice, shared=True)
    assert ask(bob, shared, server.url("pumps.git")).status_code == 403
    assert api(bob).get(f"{ALL}{shared.pk}/import/").status_code == 200


def test_strangers_see_no_imports(bob, mallory, library, server):
    ask(bob, library, server.url("pumps.git"))
    assert ask(mallory, library, server.url("pumps.git")).status_code == 404
    assert api(mallory).get(f"{ALL}{library.pk}/import/").status_code == 404
    assert api().get(f"{ALL}{library.pk}/import/").status_code == 401


def test_one_import_of_a_repository_at_a_time(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    answer = ask(bob, library, server.url("pumps.git"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


def test_the_same_key_starts_it_once(bob, library, server):
    body = {"git_url": server.url("pumps.git")}
    headers = {"Idempotency-Key": "k1"}
    path = f"{ALL}{library.pk}/import/"
    first, second = (api(bob).post(path, body, headers=headers) for _ in range(2))
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()


# -- Lost workers ----------------------------------------------------------------------------------


def test_a_lost_workers_import_begins_again(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    claimed("dead")
    Repository.objects.update(lease_until="2020-01-01T00:00:00Z")
    sweep.sweep_repositories()
    repository = work()
    assert (repository.status, repository.attempt) == ("ready", 2)
    assert texts(library) == FILES


def test_an_import_that_costs_too_many_workers_fails(bob, library, server, settings):
    ask(bob, library, server.url("pumps.git"))
    for _ in range(settings.AMBER_MAX_ATTEMPTS):
        claimed("dead")
        Repository.objects.update(lease_until="2020-01-01T00:00:00Z")
        sweep.sweep_repositories()
    repository = Repository.objects.get()
    assert repository.status == "failed"
    assert repository.error == importing.WORKER_LOST


def test_a_fenced_worker_stores_nothing(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    slow = claimed("slow")
    Repository.objects.update(status="queued", worker="")
    claimed("other")
    importing.run(slow)
    assert not Document.objects.exists()
    assert Repository.objects.get().status == "running"


def test_an_import_into_a_deleted_library_is_not_begun(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    api(bob).delete(f"{ALL}{library.pk}/")
    assert claimed() is None


def test_the_organization_that_runs_least_comes_first(bob, mallory, library, server):
    """One organization's many imports do not hide another's one."""
    for name in ("a", "b", "c"):
        ask(bob, library, server.url(f"{name}.git"))
    other = new_library(mallory)
    ask(mallory, other, server.url("pumps.git"))
    first, second = (claimed() for _ in range(2))
    assert {first.organization_id, second.organization_id} == {
        bob.organization.pk,
        mallory.organization.pk,
    }


# -- In a worker -----------------------------------------------------------------------------------


def wait_for_imports() -> None:
    for thread in threading.enumerate():
        if thread.name == "import":
            thread.join()


def test_a_worker_imports_all_that_waits_a_few_at_once(bob, library, server):
    for name in ("pumps.git", "a.git", "b.git", "c.git"):
        ask(bob, library, server.url(name))
    messages: list[str] = []
    import_threads.start_imports(Worker("w1"), enqueue=lambda: messages.append("message"))
    running = [thread for thread in threading.enumerate() if thread.name == "import"]
    assert len(running) <= import_threads.MAX_IMPORTS
    wait_for_imports()
    statuses = dict(Repository.objects.values_list("git_url", "status"))
    assert statuses.pop(server.url("pumps.git")) == "ready"
    assert set(statuses.values()) == {"failed"}
    assert messages


def test_a_worker_that_is_going_begins_nothing(bob, library, server):
    ask(bob, library, server.url("pumps.git"))
    import_threads.start_imports(Worker("w1", is_draining=True), enqueue=lambda: None)
    wait_for_imports()
    assert Repository.objects.get().status == "queued"
