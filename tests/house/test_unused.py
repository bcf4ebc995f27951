"""Find what nobody uses: the names of modules, and the methods and fields of plain classes.

Tests are no users. A module's name is used where the module itself names it elsewhere, where another
imports it or reads it from the module, or where a string is its dotted name (settings, periodic
jobs). A method or field is used where anything has its name. Classes with a framework's base are
left out: the framework calls what they define.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TypeGuard

import pytest

from tests.house import structure

HANDING_OVER = {
    "receiver",
    "register",
    "register_lookup",
    "register_tool",
    "shared_task",
    "connect",
}
"""Decorators that hand a function or a class to whoever calls it."""

FOUND_BY_THEIR_NAME = {
    *("__all__", "app_name", "urlpatterns", "handler400", "handler403", "handler404", "handler500"),
    *("BoundedHttpProtocol", "Command", "Consumer", "DatabaseWrapper"),
}
FOUND_BY_THEIR_BASE = {"AppConfig", "OpenApiAuthenticationExtension"}

KEPT = {
    # What a stream means, in Python: docs/stream-protocol.md names it, tests hold clients to it.
    "engine.events.fold",
    # A library call, for evaluations (docs/context.md).
    "chats.messages.dialog.dialog_turns",
    "chats.messages.dialog.DialogTurn.user_query",
    "chats.messages.dialog.DialogTurn.assistant_response",
    # Event loops of the platform end with their process; those of tests end before.
    "amber.lib.redis.close_async_clients",
    # Tests ask which children are kept.
    "libraries.parsing.child_pool.ChildPool.waiting_pids",
    # mkdocs calls these.
    "amber.docs_site.hooks.on_config",
    "amber.docs_site.hooks.on_files",
    "amber.docs_site.hooks.on_page_markdown",
    "amber.docs_site.hooks.on_post_build",
    # dulwich calls these.
    "libraries.git.fetching.NothingHere.ack",
    "libraries.git.fetching.NothingHere.nak",
    "libraries.git.fetching._Answer.redirect_location",
}

PLAIN_BASES = {"ABC", "Exception", "Generic", "NamedTuple", "Protocol", "TypedDict"}

Trees = dict[str, ast.Module]


@pytest.fixture(scope="module")
def defining() -> Trees:
    return structure.modules()


@pytest.fixture(scope="module")
def using(defining: Trees) -> Trees:
    """Everything but tests."""
    paths = [structure.ROOT / "manage.py", *structure.ROOT.glob("*/migrations/*.py")]
    paths += (structure.ROOT / "bench").rglob("*.py")
    return defining | {str(path): ast.parse(path.read_text()) for path in paths}


def test_every_name_of_a_module_is_used(defining, using):
    asked_for = {name for tree in using.values() for name in names_asked_for(tree)}
    unused = {
        f"{module}.{name}"
        for module, tree in defining.items()
        if module != "amber.settings"
        for name in defined_and_unused_within(tree)
    }
    assert sorted(unused - asked_for - KEPT) == []


def test_every_method_and_field_of_a_plain_class_is_used(defining, using):
    said = {word for tree in using.values() for word in words_of(tree)}
    pages = [path for app in structure.APPS for path in (structure.ROOT / app).rglob("*.html")]
    said.update(*(re.findall(r"\w+", page.read_text()) for page in pages))
    unused = {
        f"{module}.{cls.name}.{name}"
        for module, cls in plain_classes(defining)
        for node in cls.body
        for name in names_given_by(node)
        if not name.startswith("__") and name not in said
    }
    assert sorted(unused - KEPT) == []


def test_every_setting_of_our_own_is_read(defining, using):
    said = {word for tree in using.values() for word in words_of(tree)}
    unused = set(defined_and_unused_within(defining["amber.settings"])) - said
    assert sorted(name for name in unused if name.startswith("AMBER_")) == []


def test_what_is_kept_is_there(defining):
    assert set(everything_defined(defining)) >= KEPT


# -- Reading ---------------------------------------------------------------------------------------


def everything_defined(trees: Trees) -> Iterator[str]:
    for module, tree in trees.items():
        for node in tree.body:
            yield from (f"{module}.{name}" for name in names_given_by(node))
        for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in cls.body:
                yield from (f"{module}.{cls.name}.{name}" for name in names_given_by(node))


def names_given_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    parts = [part for target in targets if target for part in ast.walk(target)]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def last_name(node: ast.expr) -> str:
    """`b` of `a.b`, `a.b[c]` and `a.b(c)`."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_handed_over(node: ast.stmt) -> bool:
    decorators = {last_name(each) for each in getattr(node, "decorator_list", ())}
    bases = {last_name(each) for each in getattr(node, "bases", ())}
    return bool(decorators & HANDING_OVER or bases & FOUND_BY_THEIR_BASE)


def defined_and_unused_within(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module that only the statement itself reads, if any."""
    read_by = [{part.id for part in ast.walk(node) if is_read(part)} for node in tree.body]
    readers = Counter(chain.from_iterable(read_by))
    for node, read in zip(tree.body, read_by, strict=True):
        if not is_handed_over(node):
            for name in set(names_given_by(node)) - FOUND_BY_THEIR_NAME:
                if readers[name] == (name in read):
                    yield name


def is_read(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def names_asked_for(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a module imports, reads from modules, or has in a string."""
    meant = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                meant[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    yield from meant.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = ast.unparse(node.value)
            yield f"{meant.get(module, module)}.{node.attr}"


def words_of(tree: ast.Module) -> Iterator[str]:
    """Yield what a module reads, names in a call, or has in a short string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword):
            yield node.arg or ""
        elif is_read(node):
            yield node.id
        elif isinstance(node, ast.Constant) and re.fullmatch(r"[\w.,: ]+", str(node.value)):
            yield from re.findall(r"\w+", str(node.value))


def plain_classes(trees: Trees) -> Iterator[tuple[str, ast.ClassDef]]:
    classes = {
        node.name: (module, node)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name not in {"Meta", "Command"}
    }

    def is_plain(cls: ast.ClassDef) -> bool:
        bases = {last_name(base) for base in cls.bases} - PLAIN_BASES
        return all(
            base in classes.keys() - {cls.name} and is_plain(classes[base][1]) for base in bases
        )

    yield from ((module, cls) for module, cls in classes.values() if is_plain(cls))
