"""What cannot be imported is refused or told, and a token reaches its own server only."""

import os

import pytest

from amber.lib.tests.local_server import LocalServer
from libraries.models import Document, Repository
from libraries.tests.git.served_repositories import (
    ask,
    imported,
)
from libraries.tests.git_server import GitServer
from libraries.tests.git_server import Repository as GitRepository

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("enqueued")]


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
