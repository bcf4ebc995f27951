"""What the code of every app keeps to (docs/architecture.md); read from its syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import house

ROOT = Path(__file__).resolve().parent.parent
MODULES = [
    path.relative_to(ROOT)
    for app in house.APPS
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


def tree_of(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text(), filename=str(module))


def parents_of(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def functions_around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def name_of(node: ast.AST | None) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_the_apps_are_all_here():
    here = {path.parent.name for path in ROOT.glob("*/apps.py")} | {"engine", "amber"}
    assert here == set(house.APPS)


# -- Rows reach a view through one door ------------------------------------------------------------

SHOWN = [m for m in MODULES if m.stem.endswith(("views", "view", "serializers"))]


@pytest.mark.parametrize("module", SHOWN, ids=str)
def test_views_look_rows_up_through_their_door_only(module):
    """`X.objects.visible_to(…)`, `.writable_by(…)`, `get_visible`, `get_writable`: nothing else.

    What hangs on an authorised row (`chat.messages`) was authorised with it.
    """
    tree = tree_of(module)
    parents = parents_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("objects", "_default_manager"):
            called = name_of(parents[node])
            assert called in DOORS, f"{module}:{node.lineno} looks rows up without {sorted(DOORS)}"


@pytest.mark.parametrize("module", SHOWN, ids=str)
def test_shapes_and_views_write_nothing(module):
    writing = {"save", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call):
            assert name_of(node.func) not in writing, f"{module}:{node.lineno} writes a row"


# -- Messages to workers ---------------------------------------------------------------------------


SENDER = "amber/lib/workers/queue.py"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_enqueue_functions_send_messages(module):
    """`enqueue_…` functions name task and queue; nobody else knows that there is a broker, and only
    `enqueue` sends what Celery can lose."""
    tree = tree_of(module)
    parents = parents_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            sends = node.attr in ("delay", "apply_async", "send_task")
            assert not sends or str(module) == SENDER, f"{module}:{node.lineno}"
        if isinstance(node, ast.Call) and name_of(node.func) == "enqueue":
            around = list(functions_around(node, parents))
            assert any(name.startswith("enqueue_") for name in around), f"{module}:{node.lineno}"


@pytest.mark.parametrize("module", [m for m in MODULES if "services" in m.stem], ids=str)
def test_services_enqueue_after_commit(module):
    """Before it the worker would find no row."""
    tree = tree_of(module)
    parents = parents_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id.startswith("enqueue_"):
            made = parents[node]
            assert isinstance(made, ast.Call), f"{module}:{node.lineno}"
            assert name_of(made.func) == "partial", f"{module}:{node.lineno} enqueues at once"
            assert name_of(getattr(parents[made], "func", None)) == "on_commit"


# -- Leases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_the_kit_writes_a_lease(module):
    """While a row runs renewal alone does: a copy in memory is as old as the claim."""
    if module == Path("amber/lib/database/lease.py"):
        return
    for node in ast.walk(tree_of(module)):
        written = {
            ast.keyword: lambda node: [node.arg],
            ast.Attribute: lambda node: [node.attr] if isinstance(node.ctx, ast.Store) else [],
            ast.Dict: lambda node: [getattr(key, "value", None) for key in node.keys],
        }.get(type(node), lambda _: [])(node)
        assert "lease_until" not in written, f"{module}:{getattr(node, 'lineno', '')}"


# -- Errors -----------------------------------------------------------------------------------------


def broad_handlers(module: Path) -> Iterator[ast.ExceptHandler]:
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(
                each is None or name_of(each) in ("Exception", "BaseException") for each in caught
            ):
                yield node


def hands_on(handler: ast.ExceptHandler) -> bool:
    """It raises again, or gives the exception to whoever waits for it."""
    return any(
        isinstance(node, ast.Raise) or name_of(node) == "set_exception"
        for node in ast.walk(handler)
    )


def test_five_places_swallow_everything_and_log_it():
    swallowing = {
        str(module): handler
        for module in MODULES
        for handler in broad_handlers(module)
        if not hands_on(handler)
    }
    assert set(swallowing) == SWALLOWS_EVERYTHING
    for module, handler in swallowing.items():
        logs = [node for node in ast.walk(handler) if name_of(node) == "exception"]
        assert logs, f"{module} swallows without a trace"


# -- Form -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_says_what_it_is_for(module):
    if (ROOT / module).read_text().strip():
        assert ast.get_docstring(tree_of(module)), f"{module} says nothing"


def test_no_module_is_a_drawer():
    drawers = {"utils", "helpers", "common", "manager", "handler", "misc"}
    assert not {str(m) for m in MODULES if m.stem in drawers or m.stem.startswith("base_")}
