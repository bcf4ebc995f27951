"""Packs of strangers: what a tree may name, what a pack may hold, and which files are meant."""

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, Tree
from dulwich.pack import write_pack_objects

from libraries.git import packs
from libraries.git.fetching import FetchedPack, GitRefused
from libraries.git.globs import selector
from libraries.git.packs import PackReader, PathFilter
from libraries.parsing import ParserLost
from libraries.parsing.confinement import ParserLimits

FILE, EXECUTABLE, LINK, FOLDER, SUBMODULE = 0o100644, 0o100755, 0o120000, 0o040000, 0o160000
Entry = tuple[bytes, int, bytes]


def tree_of(entries: Sequence[Entry], objects: list[Any]) -> bytes:
    """A tree of (name, mode, content), written as it is given: nothing is checked."""
    tree = Tree()
    for name, mode, content in entries:
        if mode in (FOLDER, SUBMODULE):
            tree.add(name, mode, content)  # type: ignore[arg-type]
            continue
        blob = Blob.from_string(content)
        objects.append(blob)
        tree.add(name, mode, blob.id)
    objects.append(tree)
    return tree.id


def commit_of(tree: bytes, objects: list[Any]) -> str:
    commit = Commit()
    commit.tree = tree
    commit.author = commit.committer = b"A <a@example.com>"
    commit.author_time = commit.commit_time = commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"x"
    objects.append(commit)
    return commit.id.decode()


def fetched(commit: str, objects: Sequence[Any]) -> FetchedPack:
    file = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `read`)
    write_pack_objects(file, [(each, None) for each in objects], object_format=SHA1)
    size = file.tell()
    file.seek(0)
    return FetchedPack(commit, file, size)


def read(pack: FetchedPack, **wanted: Any) -> tuple[dict[str, bytes | None], Mapping[str, int]]:
    reader = PackReader(pack, PathFilter(**wanted))
    with pack.pack:
        return {file.path: file.data for file in reader}, reader.skipped


def read_tree(*entries: Entry, **wanted: Any) -> tuple[dict[str, bytes | None], Mapping[str, int]]:
    objects: list[Any] = []
    commit = commit_of(tree_of(entries, objects), objects)
    return read(fetched(commit, objects), **wanted)


def test_files_come_with_their_contents():
    files, skipped = read_tree((b"a.txt", FILE, b"text"), (b"run.sh", EXECUTABLE, b"#!/bin/sh\n"))
    assert files == {"a.txt": b"text", "run.sh": b"#!/bin/sh\n"}
    assert skipped == {}


def test_what_is_known_comes_without_content():
    known = {"a.txt": hashlib.sha256(b"text").hexdigest(), "b.txt": "0" * 64}
    files, _ = read_tree((b"a.txt", FILE, b"text"), (b"b.txt", FILE, b"new"), known=known)
    assert files == {"a.txt": None, "b.txt": b"new"}


@pytest.mark.parametrize(
    "name", [b"..", b".", b".git", b".GIT", b"a/../../b", b"/etc", b"a\\b", b"a\nb", b"x" * 1_001]
)
def test_a_path_that_is_none_is_left_out(name):
    files, skipped = read_tree((name, FILE, b"text"), (b"good.txt", FILE, b"text"))
    assert files == {"good.txt": b"text"}
    assert skipped == {"unsafe_path": 1}


def test_links_and_submodules_are_not_followed():
    files, skipped = read_tree(
        (b"link", LINK, b"/etc/passwd"), (b"module", SUBMODULE, b"1" * 40), (b"z", FILE, b"z")
    )
    assert files == {"z": b"z"}
    assert skipped == {"link": 1, "submodule": 1}


def test_names_in_other_encodings_stay_apart():
    files, _ = read_tree(("健康.txt".encode(), FILE, b"1"), ("健康.txt".encode("gbk"), FILE, b"2"))
    assert files["健康.txt"] == b"1"


def test_a_tree_that_holds_itself_ends():
    """No tree can name itself, but many levels can name one tree again and again."""
    objects: list[Any] = []
    tree = tree_of([(b"a.txt", FILE, b"text")], objects)
    for _ in range(150):
        tree = tree_of([(b"d", FOLDER, tree)], objects)
    with pytest.raises(GitRefused, match="damaged"):
        read(fetched(commit_of(tree, objects), objects))


def test_a_tree_of_many_paths_and_few_objects_is_refused():
    """Ten folders of the same ten folders, and so on: 10,000,000 paths in eight objects."""
    objects: list[Any] = []
    tree = tree_of([(b"a.txt", FILE, b"text")], objects)
    for _ in range(7):
        tree = tree_of([(b"%d" % n, FOLDER, tree) for n in range(10)], objects)
    with pytest.raises(GitRefused, match="more than 20,000 files"):
        read(fetched(commit_of(tree, objects), objects))


def test_a_pack_that_unpacks_to_far_more_is_refused():
    with pytest.raises(GitRefused, match="unpacked"):
        read_tree((b"zeros", FILE, bytes(450_000_000)))


def test_a_pack_without_its_tree_is_damaged():
    objects: list[Any] = []
    commit = commit_of(b"1" * 40, objects)
    with pytest.raises(GitRefused, match="damaged"):
        read(fetched(commit, objects))


@pytest.mark.parametrize("content", [b"", b"PACK", b"not a pack at all", os.urandom(10_000)])
def test_what_is_no_pack_is_damaged(content):
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(0)
    with pytest.raises(GitRefused, match="damaged"):
        read(FetchedPack("1" * 40, file, len(content)))


def test_a_repository_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(packs, "UNPACK_LIMITS", ParserLimits(wall_seconds=0))
    with pytest.raises(GitRefused, match="too large to be unpacked"):
        read_tree((b"a.txt", FILE, b"text"))


def test_an_unpacking_process_that_is_killed_is_no_fault_of_the_repository(monkeypatch):
    monkeypatch.setattr(packs, "COMMAND", ("-c", "import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(ParserLost):
        read_tree((b"a.txt", FILE, b"text"))


# -- Patterns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.md", ["a.md", "x/y/a.md"], ["a.mdx", "a.md.txt"]),
        ("docs", ["docs/a", "docs/b/c", "x/docs/a"], ["docs2/a", "mydocs"]),
        ("docs/", ["docs/a"], ["docs2"]),
        ("/docs", ["docs/a"], []),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "x/docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md"], ["a.md"]),
        ("**/test_?.py", ["test_a.py", "x/test_b.py"], ["test_ab.py"]),
        ("src/**", ["src/a", "src/b/c"], ["asrc/a"]),
        ("a[1].txt", ["a[1].txt"], ["a1.txt"]),
        ("./a.txt", ["a.txt"], ["b.txt"]),
    ],
)
def test_patterns_mean_what_people_expect(pattern, matching, others):
    is_meant = selector([pattern], [])
    assert [path for path in [*matching, *others] if is_meant(path)] == matching
    is_left = selector([], [pattern])
    assert [path for path in [*matching, *others] if is_left(path)] == others


@pytest.mark.parametrize("pattern", ["*a" * 5 + "b", "**/*a" * 9 + "b", "a?*" * 10 + "b"])
def test_a_pattern_made_to_be_slow_takes_time_in_proportion_to_the_path(pattern):
    is_meant = selector([pattern], [])

    def seconds(chars):
        began = time.process_time()
        assert not is_meant("a" * chars)
        return time.process_time() - began

    short, long = (min(seconds(chars) for _ in range(5)) for chars in (1_000, 4_000))
    assert long < 10 * short


def test_patterns_of_a_list_count_each_for_itself():
    is_meant = selector(["*.md", "docs/**/*.rst", "src/**"], ["src/*.min.js", "**/draft?.md"])
    paths = ["a/b.md", "docs/x.rst", "docs/a/b.rst", "src/a/b.c", "x.rst"]
    assert [path for path in paths if is_meant(path)] == paths[:-1]
    assert not is_meant("src/x.min.js")
    assert not is_meant("a/draft1.md")
