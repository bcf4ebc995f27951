"""The structure of the code, read from its imports: which app and which package imports which.

`python -m tests.house.structure` prints the pictures of docs/architecture.md as they should be; a test holds
the page against them. An arrow that follows from others is left out (transitive reduction).
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = (
    *("amber", "engine", "accounts", "providers", "memory", "libraries", "tools", "assistants"),
    *("chats", "operations", "public_api"),
)
COMPOSITION = "amber"
"""Holds `amber.lib`, the lowest of all, beside the composition root, the highest: drawn as two."""

Graph = dict[str, set[str]]


def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module that is neither a test nor a migration, by its name."""
    trees = {}
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if not {"tests", "migrations"} & set(parts):
                name = ".".join(parts).removesuffix(".__init__")
                trees[name] = ast.parse(path.read_text())
    return trees


def imports(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return which of these modules each imports, inside functions too, but not for types alone."""
    return {name: set(_imported(tree, trees)) - {name} for name, tree in trees.items()}


def _imported(tree: ast.Module, trees: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in trees)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in trees or node.module in trees:
                    yield whole if whole in trees else node.module


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree, passing over what stands below `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _nodes(node)


def apps_graph(arrows: Mapping[str, set[str]]) -> Graph:
    """Return which app imports which; `amber.lib` counts as an app of its own."""

    def app(module: str) -> str:
        first, _, rest = module.partition(".")
        return "amber.lib" if first == COMPOSITION and rest.split(".")[0] == "lib" else first

    return _grouped(arrows, app)


def packages_graph(arrows: Mapping[str, set[str]], app: str) -> Graph:
    """Return which package of an app imports which; modules at the app's root are left out."""
    packages = {
        path.parent.name for path in (ROOT / app.replace(".", "/")).glob("*/__init__.py")
    } - {"tests", "migrations", "management"}
    depth = app.count(".") + 1

    def package(module: str) -> str:
        parts = module.split(".")
        inside = module.startswith(f"{app}.") and len(parts) > depth
        return parts[depth] if inside and parts[depth] in packages else ""

    graph = _grouped(arrows, package)
    graph.pop("", None)
    return {name: graph.get(name, set()) - {""} for name in packages}


def _grouped(arrows: Mapping[str, set[str]], group: Callable[[str], str]) -> Graph:
    graph: Graph = defaultdict(set)
    for name, others in arrows.items():
        graph[group(name)] |= {group(other) for other in others} - {group(name)}
    return dict(graph)


def reduced(graph: Graph) -> Graph:
    """Return the graph without the arrows that follow from others. Raises CycleError."""
    order = list(TopologicalSorter(graph).static_order())
    below: Graph = {}
    for name in order:
        direct = graph.get(name, set())
        below[name] = direct.union(*(below[other] for other in direct))
    return {
        name: {
            other
            for other in graph.get(name, set())
            if not any(other in below[between] for between in graph[name] - {other})
        }
        for name in order
    }


def picture_of_apps(arrows: Mapping[str, set[str]]) -> str:
    graph = apps_graph(arrows)
    graph.pop(COMPOSITION, None)
    return "\n".join(["flowchart TD", *_lines(reduced(graph), "    ")])


def picture_of_packages(arrows: Mapping[str, set[str]]) -> str:
    lines = ["flowchart TD"]
    for app in ("public_api", "operations", *reversed(APPS[1:-2]), "amber.lib"):
        prefix = app.replace(".", "_")
        lines.append(f'    subgraph {prefix}["{app}"]')
        lines += _lines(reduced(packages_graph(arrows, app)), "        ", prefix)
        lines.append("    end")
    return "\n".join(lines)


def _lines(graph: Graph, indent: str, prefix: str = "") -> list[str]:
    def node(name: str) -> str:
        return f"{prefix}_{name}[{name}]" if prefix else name

    touched = {name for name, others in graph.items() if others}.union(*graph.values())
    alone = [f"{indent}{node(name)}" for name in sorted(set(graph) - touched)]
    return alone + [
        f"{indent}{node(name)} --> {node(other)}"
        for name in sorted(graph)
        for other in sorted(graph[name])
    ]


def counts(trees: Mapping[str, ast.Module]) -> str:
    """Return the sizes that say whether the house stays small, a line each."""
    texts = [path.read_text() for app in APPS for path in (ROOT / app).rglob("*.py")]
    lengths = sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    roots = {app: sum(1 for _ in (ROOT / app).glob("[!_]*.py")) for app in APPS}
    return "\n".join(
        [
            f"{len(trees)} modules without tests, {sum(text.count(chr(10)) for text in texts):,} lines with them",
            f"functions: median {lengths[len(lengths) // 2]} lines, 90% up to "
            f"{lengths[len(lengths) * 9 // 10]}, the longest {lengths[-1]}",
            f"modules at the root of an app: {', '.join(f'{app} {n}' for app, n in roots.items())}",
        ]
    )


if __name__ == "__main__":
    these = modules()
    found = imports(these)
    if sys.argv[1:] == ["counts"]:
        print(counts(these))  # noqa: T201
    else:
        for picture in (picture_of_apps(found), picture_of_packages(found)):
            print(f"```mermaid\n{picture}\n```\n")  # noqa: T201
