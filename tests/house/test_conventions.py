"""What the code of every app keeps to (docs/architecture.md); read from its syntax trees."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import pytest

from tests.house import structure

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    path.relative_to(ROOT)
    for app in structure.APPS
    for path in sorted((ROOT / app).rglob("*.py"))
    if not {"tests", "migrations"} & set(path.relative_to(ROOT).parts)
]
SWALLOWS_EVERYTHING = {
    *(
        "amber/lib/workers/guard.py",
        "chats/running/runner.py",
        "libraries/ingestion/indexing.py",
        "public_api/mcp/server.py",
        "tools/calling/toolbox.py",
    ),
}
"""A turn, a document reaches a state whatever happens; a tool's fault is a result; a worker's
maintenance goes on. All log with the trace."""

DOORS = {"visible_to", "writable_by"}


Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Source:
    """A module as it is written."""

    path: str
    tree: ast.Module

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def all(self, kind: type[Node]) -> list[Node]:
        return [node for node in self.nodes if isinstance(node, kind)]

    def functions_around(self, node: ast.AST) -> Iterator[str]:
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name


def name_of(node: ast.AST | None) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_the_apps_are_all_here():
    here = {path.parent.name for path in ROOT.glob("*/apps.py")} | {"engine", "amber"}
    assert here == set(structure.APPS)


# -- Rows reach a view through one door ------------------------------------------------------------


def looks_past_the_door(source: Source) -> Iterator[str]:
    """Views look rows up with `X.objects.visible_to(…)`, `.writable_by(…)`, `get_visible`, `get_writable`: nothing
    else. What hangs on an authorised row (`chat.messages`) was authorised with it."""
    for node in source.all(ast.Attribute) if is_shown(source) else ():
        is_lookup = node.attr in ("objects", "_default_manager")
        if is_lookup and name_of(source.parents[node]) not in DOORS:
            yield f"{source.path}:{node.lineno} looks rows up without {sorted(DOORS)}"


def writes_in_a_shape_or_view(source: Source) -> Iterator[str]:
    writing = {"save", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
    for node in source.all(ast.Call) if is_shown(source) else ():
        if name_of(node.func) in writing:
            yield f"{source.path}:{node.lineno} writes a row"


def is_shown(source: Source) -> bool:
    return Path(source.path).stem.endswith(("views", "view", "serializers"))


# -- Messages to workers ---------------------------------------------------------------------------


SENDER = "amber/lib/workers/queue.py"
ADMISSION = "chats/turns/admission.py"


def sends_messages_itself(source: Source) -> Iterator[str]:
    """`enqueue_…` functions name task and queue; nobody else knows that there is a broker, and only
    `enqueue` sends what Celery can lose."""
    for node in source.all(ast.Attribute):
        if node.attr in ("delay", "apply_async", "send_task") and source.path != SENDER:
            yield f"{source.path}:{node.lineno} sends a message"
    for call in source.all(ast.Call):
        around = source.functions_around(call) if name_of(call.func) == "enqueue" else ["enqueue_"]
        if not any(name.startswith("enqueue_") for name in around):
            yield f"{source.path}:{call.lineno} enqueues outside of an enqueue_… function"


def enqueues_before_the_commit(source: Source) -> Iterator[str]:
    """Services enqueue after it: before it the worker would find no row."""
    is_service = "services" in Path(source.path).stem or source.path == ADMISSION
    for node in source.all(ast.Name) if is_service else ():
        if node.id.startswith("enqueue_"):
            caller = source.parents[node]
            if isinstance(caller, ast.Call) and name_of(caller.func) == "partial":
                caller = source.parents[caller]
            is_after = isinstance(caller, ast.Call) and name_of(caller.func) == "on_commit"
            if not is_after:
                yield f"{source.path}:{node.lineno} enqueues at once"


# -- Leases ----------------------------------------------------------------------------------------


LEASE_KIT = "amber/lib/database/lease.py"


def writes_a_lease(source: Source) -> Iterator[str]:
    """Only the kit does, and while a row runs only its renewal: a copy in memory is as old as the claim."""
    for node in source.nodes if source.path != LEASE_KIT else ():
        written = {
            ast.keyword: lambda node: [node.arg],
            ast.Attribute: lambda node: [node.attr] if isinstance(node.ctx, ast.Store) else [],
            ast.Dict: lambda node: [getattr(key, "value", None) for key in node.keys],
        }.get(type(node), lambda _: [])(node)
        if "lease_until" in written:
            yield f"{source.path}:{getattr(node, 'lineno', '')} writes a lease"


# -- Errors -----------------------------------------------------------------------------------------


def broad_handlers(source: Source) -> Iterator[ast.ExceptHandler]:
    for node in source.all(ast.ExceptHandler):
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(each is None or name_of(each) in ("Exception", "BaseException") for each in caught):
            yield node


def hands_on(handler: ast.ExceptHandler) -> bool:
    """It raises again, or gives the exception to whoever waits for it."""
    return any(
        isinstance(node, ast.Raise) or name_of(node) == "set_exception"
        for node in ast.walk(handler)
    )


def swallows_errors(source: Source) -> Iterator[str]:
    """Five places swallow everything, and log it."""
    swallowing = [each for each in broad_handlers(source) if not hands_on(each)]
    if bool(swallowing) != (source.path in SWALLOWS_EVERYTHING):
        yield f"{source.path} and SWALLOWS_EVERYTHING disagree"
    for handler in swallowing:
        if not any(name_of(node) == "exception" for node in ast.walk(handler)):
            yield f"{source.path}:{handler.lineno} swallows without a trace"


# -- Form -------------------------------------------------------------------------------------------


def says_nothing(source: Source) -> Iterator[str]:
    """Every module says what it is for."""
    if source.tree.body and not ast.get_docstring(source.tree):
        yield f"{source.path} says nothing"


def is_a_drawer(source: Source) -> Iterator[str]:
    drawers = {"utils", "helpers", "common", "manager", "handler", "misc"}
    if Path(source.path).stem in drawers or Path(source.path).stem.startswith("base_"):
        yield source.path


STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|COPY|CREATE|ALTER|DROP)\b")


def hides_a_statement(source: Source) -> Iterator[str]:
    """A constant that is SQL says so by its name."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            name = name_of(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            texts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            is_sql = isinstance(node.value, ast.Constant | ast.JoinedStr) and any(
                isinstance(text, str) and STATEMENT.match(text) for text in texts[:1]
            )
            if is_sql and not name.endswith(("SQL", "_TEMPLATE")):
                yield f"{source.path}: {name}"


REFERENCE = re.compile(rf"`((?:{'|'.join(structure.APPS)})(?:\.\w+)+)`")


@cache
def known_names() -> set[str]:
    """The dotted names of all modules, and of what is defined in them, at any depth."""
    names: set[str] = set()
    for module, tree in structure.modules().items():
        parts = module.removesuffix(".__init__").split(".")
        names.update(".".join(parts[: n + 1]) for n in range(len(parts)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(f"{module}.{node.name}")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(f"{module}.{node.id}")
    return names


def names_what_is_gone(source: Source) -> Iterator[str]:
    """What a docstring refers to by a dotted name is there. Names of one dot may be other things."""
    for node in source.all(ast.Constant):
        for named in REFERENCE.findall(node.value) if isinstance(node.value, str) else ():
            without_field = re.sub(r"(\.[A-Z]\w*)\..*", r"\1", named)
            if named.count(".") > 1 and without_field not in known_names():
                yield f"{source.path}: {named}"


# -- Every module against every rule ---------------------------------------------------------------

RULES = (
    *(looks_past_the_door, writes_in_a_shape_or_view, sends_messages_itself),
    *(enqueues_before_the_commit, writes_a_lease, swallows_errors, says_nothing, is_a_drawer),
    *(hides_a_statement, names_what_is_gone),
)


def test_every_module_keeps_every_rule():
    """Each is read once: as tests of their own these are 2,450, which cost more than what they look at."""
    assert {str(module) for module in MODULES} >= SWALLOWS_EVERYTHING
    faults = [
        fault
        for module in MODULES
        for source in [Source(str(module), ast.parse((ROOT / module).read_text()))]
        for rule in RULES
        for fault in rule(source)
    ]
    assert faults == []


BREAKS = (
    (looks_past_the_door, "chats/api/views.py", "Chat.objects.get(pk=1)"),
    (writes_in_a_shape_or_view, "chats/api/views.py", "chat.save()"),
    (sends_messages_itself, "chats/services.py", "work.delay(1)"),
    (sends_messages_itself, "chats/services.py", "def f(): enqueue(1)"),
    (enqueues_before_the_commit, "chats/services.py", "enqueue_turn(1)"),
    (enqueues_before_the_commit, "chats/services.py", "run(partial(enqueue_turn, 1))"),
    (enqueues_before_the_commit, "libraries/services.py", "transaction.on_commit(enqueue_work())"),
    (enqueues_before_the_commit, ADMISSION, "enqueue_turn(1)"),
    (writes_a_lease, "chats/services.py", "turn.lease_until = 1"),
    (writes_a_lease, "chats/services.py", "turns.update(lease_until=1)"),
    (writes_a_lease, "chats/services.py", "save({'lease_until': 1})"),
    (swallows_errors, "chats/services.py", "try:\n f()\nexcept Exception:\n pass"),
    (swallows_errors, "chats/running/runner.py", "try:\n f()\nexcept:\n pass"),
    (swallows_errors, "chats/running/runner.py", "f()"),
    (says_nothing, "chats/services.py", "f()"),
    (is_a_drawer, "chats/utils.py", "f()"),
    (hides_a_statement, "chats/services.py", "_READ: Final = 'SELECT 1'"),
    (names_what_is_gone, "chats/services.py", "'See `chats.digest.block_index`.'"),
    (names_what_is_gone, "chats/services.py", "'See `engine.messages.Massage`.'"),
)


@pytest.mark.parametrize(("rule", "path", "code"), BREAKS)
def test_a_rule_finds_what_breaks_it(rule, path, code):
    assert list(rule(Source(path, ast.parse(code))))
