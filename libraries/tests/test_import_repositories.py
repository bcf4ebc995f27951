"""Git repositories become documents: over a real server, with TLS and a token; again and again."""

import os
import ssl
import threading
from dataclasses import replace
from typing import Any

import pytest

from amber.lib.tests.guarded_client import guarded
from amber.lib.tests.local_server import LocalServer
from amber.lib.tests.test_fetch_egress import certificate_for
from amber.lib.workers.worker import Worker
from libraries import sweep
from libraries.git import import_threads, importing
from libraries.models import Document, DocumentChunk, Repository
from libraries.tests.git_server import HAS_GIT, GitServer
from libraries.tests.git_server import Repository as GitRepository
from libraries.tests.ledger import ALL, assert_counted, ingest, new_document, new_library
from libraries.tests.rings import enqueued
from tests.personas import Persona, api

__all__ = ["enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)

FILES = {
    "README.md": "# Pumps\n\nThe pump P-102 is blue.",
    "docs/valve.md": "# Valves\n\nThe valve turns left.",
    "src/pump.py": "def pump():\n    return 'P-102'\n",
}


@pytest.fixture
def library(bob):
    return new_library(bob)


@pytest.fixture(autouse=True)
def messages(enqueued):
    return enqueued


@pytest.fixture
def source(tmp_path):
    made = GitRepository(tmp_path / "served" / "pumps.git")
    made.commit(FILES)
    return made


@pytest.fixture
def certificate(tmp_path):
    return certificate_for("tls.test", tmp_path)


@pytest.fixture
def allowed(monkeypatch, certificate):
    """The server of these tests, under its name."""
    trusting = ssl.create_default_context(cafile=str(certificate))
    policy = replace(guarded(allow=["tls.test"]), ssl_context=trusting)
    monkeypatch.setattr("amber.lib.egress._policy_allowing", lambda _: policy)


@pytest.fixture
def server(source, certificate, allowed):
    with GitServer(certificate, {"pumps.git": source}) as running:
        yield running


def ask(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    return api(persona).post(f"{ALL}{library.pk}/import/", {"git_url": url, **more})


def claimed(worker: str = "w1") -> Any:
    return importing.claim(Worker(worker))


def work() -> Any:
    """A worker imports what waits; the one repository as it is then."""
    while (repository := claimed()) is not None:
        importing.run(repository)
    return Repository.objects.order_by("-updated_at").first()


def imported(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    answer = ask(persona, library, url, **more)
    assert answer.status_code == 202, answer.content
    return work()


def texts(library: Any) -> dict[str, str]:
    ingest()
    return dict(Document.objects.filter(library=library).values_list("path", "text"))


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


def test_the_answer_says_how_it_goes_and_nothing_of_the_token(bob, library, server, messages):
    url = server.url("pumps.git")
    answer = ask(bob, library, url, ref="main", token="secret-token", include=["*.md"])
    assert answer.status_code == 202
    assert "libraries.import_repositories" in messages
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


# -- Tokens ----------------------------------------------------------------------------------------


@pytest.fixture
def locked(source, certificate, allowed):
    with GitServer(certificate, {"pumps.git": source}, token="sesame") as running:
        yield running


def test_a_token_opens_and_is_kept(bob, library, locked):
    assert imported(bob, library, locked.url("pumps.git"), token="sesame").status == "ready"
    assert imported(bob, library, locked.url("pumps.git")).status == "ready"


@pytest.mark.parametrize(
    ("more", "said"),
    [({}, "requires a token"), ({"token": "wrong"}, "refuses the token")],
    ids=["none", "wrong"],
)
def test_without_the_right_token_it_says_so(bob, library, locked, more, said):
    repository = imported(bob, library, locked.url("pumps.git"), **more)
    assert repository.status == "failed"
    assert said in repository.error
    assert not Document.objects.exists()


def test_an_empty_token_forgets_the_old_one(bob, library, locked):
    imported(bob, library, locked.url("pumps.git"), token="sesame")
    assert imported(bob, library, locked.url("pumps.git"), token="").status == "failed"


def test_the_token_does_not_follow_a_redirect(bob, library, source, certificate, allowed):
    with GitServer(certificate, {"pumps.git": source}, token="sesame") as target:
        with GitServer(certificate, {"x": source}, redirect=target.url("")[:-1]) as first:
            imported(bob, library, first.url("moved/pumps.git"), token="sesame")
            assert {given for _, _, given in first.requests} != {""}
        assert {given for _, _, given in target.requests} == {""}


def test_a_redirect_to_the_same_server_keeps_it(bob, library, source, certificate, allowed):
    with GitServer(certificate, {"pumps.git": source}, token="sesame") as server:
        server.redirect = server.url("")[:-1]
        repository = imported(bob, library, server.url("moved/pumps.git"), token="sesame")
        assert repository.status == "ready", repository.error


# -- What cannot be imported -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://tls.test/pumps.git",
        "git://tls.test/pumps.git",
        "ssh://git@tls.test/pumps.git",
        "git@tls.test:pumps.git",
        "file:///etc",
        "/etc",
        "../other",
        "ext::sh -c true",
        "https://user:password@tls.test/pumps.git",
        "https://",
    ],
)
def test_only_https_without_a_password_is_taken(bob, library, url, allowed):
    answer = ask(bob, library, url)
    assert answer.status_code == 400
    assert "git_url" in answer.json()["error"]["fields"]
    assert not Repository.objects.exists()


@pytest.mark.parametrize("field", ["include", "exclude"])
def test_a_pattern_of_too_many_wildcards_is_refused(bob, library, field, allowed):
    answer = ask(bob, library, "https://tls.test/a.git", **{field: ["*.md", "*a?" * 10 + "**"]})
    assert answer.status_code == 400
    [said] = answer.json()["error"]["fields"].items()
    assert said[0].startswith(field)
    assert "at most 20 wildcards" in str(said[1])
    assert not Repository.objects.exists()


@pytest.mark.parametrize("ref", ["--upload-pack=x", "a b", "a^", "a:b", "a\tb", "a~1", "x" * 256])
def test_a_ref_that_is_none_is_refused(bob, library, ref, allowed):
    answer = ask(bob, library, "https://tls.test/a.git", ref=ref)
    assert answer.status_code == 400
    assert "ref" in answer.json()["error"]["fields"]


@pytest.mark.parametrize(
    ("path", "ref", "said"),
    [
        ("nothing.git", "", "no Git repository"),
        ("pumps.git", "no-such-branch", "no branch, tag or commit"),
    ],
)
def test_what_is_not_there_is_told(bob, library, server, path, ref, said):
    repository = imported(bob, library, server.url(path), ref=ref)
    assert repository.status == "failed"
    assert said in repository.error


def test_an_empty_repository_is_told(bob, library, tmp_path, certificate, allowed):
    empty = GitRepository(tmp_path / "served" / "empty.git")
    with GitServer(certificate, {"empty.git": empty}) as server:
        assert "empty" in imported(bob, library, server.url("empty.git")).error


def test_a_web_page_is_no_repository(bob, library, certificate, allowed, source):
    with GitServer(certificate, {"pumps.git": source}, redirect="https://tls.test:1") as server:
        repository = imported(bob, library, server.url("moved/page"))
    assert repository.status == "failed"
    assert repository.error


def test_a_repository_over_the_limit_is_refused(bob, library, source, server, settings):
    settings.AMBER_MAX_REPOSITORY_BYTES = 20_000
    source.commit({"noise.txt": os.urandom(30_000).hex()})
    repository = imported(bob, library, server.url("pumps.git"))
    assert repository.status == "failed"
    assert "too large" in repository.error
    assert not Document.objects.exists()


def test_a_failed_import_leaves_what_was_imported_before(bob, library, source, server, settings):
    imported(bob, library, server.url("pumps.git"))
    settings.AMBER_MAX_REPOSITORY_BYTES = 10
    assert imported(bob, library, server.url("pumps.git")).status == "failed"
    assert Document.objects.count() == 3


def test_a_redirect_to_an_inner_address_is_not_followed(bob, library, source, certificate, allowed):
    with LocalServer() as inner:
        inside = f"https://127.0.0.1:{inner.port}"
        with GitServer(certificate, {"pumps.git": source}, redirect=inside) as server:
            repository = imported(bob, library, server.url("moved/pumps.git"))
        assert repository.status == "failed"
        assert inner.accepted == 0


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
