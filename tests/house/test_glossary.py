"""docs/glossary.md: its terms are used in the code, and the words they replaced are not."""

import ast
import re

import pytest

from tests.house import structure

PAGE = (structure.ROOT / "docs" / "glossary.md").read_text()
TERMS = [
    term.strip("`")
    for term in re.findall(r"^\| (`?[\w ]+`?) \|", PAGE, re.MULTILINE)
    if term != "term"
]
REPLACED = {
    *("ring", "rings", "rung", "keeper", "keepers", "chore", "chores", "duty", "duties"),
    *("unseal", "happening", "happenings", "patience", "recipe", "theirs", "asker", "spender"),
    *("belongings", "arm", "arms"),
}
PARTICIPLE = re.compile(r"[a-z]+(ed|own|old|aid)|kept|held|found|sent|made|given|written|told")
NO_PARTICIPLES = {"embed", "feed", "need", "fold", "hold", "shutdown"}
TABLES = {"chats_chore", "rung_at"}
"""Names in the database, which stay."""


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@pytest.fixture(scope="module")
def names():
    """Every name that the code gives: modules, classes, functions, arguments, variables, fields."""
    given = set()
    for module, tree in structure.modules().items():
        given.update(module.split("."))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                given.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                given.add(node.id)
            elif isinstance(node, ast.arg):
                given.add(node.arg)
    return given


@pytest.fixture(scope="module")
def spoken(names):
    """The words of each name, also in the singular: what names have in common is there once."""
    return {frozenset(words_of(name) | singular(words_of(name))) for name in names}


def test_the_page_has_terms():
    assert len(TERMS) > 30


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_used(spoken, term):
    wanted = set(re.split(r"[ _]", term))
    assert any(wanted <= words for words in spoken)


def singular(words: set[str]) -> set[str]:
    return {word.removesuffix("s") for word in words}


def test_words_that_were_replaced_are_gone(names):
    left = {name for name in names - TABLES if words_of(name) & REPLACED}
    assert not left


def test_no_class_name_stands_twice():
    places: dict[str, list[str]] = {}
    for module, tree in structure.modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in {"Meta", "Command"}:
                places.setdefault(node.name.strip("_"), []).append(module)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_no_function_is_named_by_a_bare_participle():
    """It says what was done, not what it does. A property is a thing, and may be called so."""
    found = [
        name
        for name, node in named_by_participle(ast.FunctionDef | ast.AsyncFunctionDef)
        if not any("property" in ast.unparse(each) for each in node.decorator_list)
    ]
    assert not found


def test_no_class_is_named_by_a_bare_participle():
    """It leaves out what was fetched or fitted. An error tells what happened, and may be called so."""
    found = [
        name
        for name, node in named_by_participle(ast.ClassDef)
        if not any(
            "Error" in ast.unparse(base) or "Exception" in ast.unparse(base) for base in node.bases
        )
    ]
    assert found == ["amber.lib.database.lease.Leased"]  # a mixin: it describes another class


def named_by_participle(kinds):
    for module, tree in structure.modules().items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                first, *more = words_of(node.name) or {""}
                if not more and PARTICIPLE.fullmatch(first) and first not in NO_PARTICIPLES:
                    yield f"{module}.{node.name}", node
