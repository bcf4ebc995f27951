"""Hold the modules that work for more than one person to the page that lists them and says why.

docs/security-model.md is the only list. A module that is missing there fails, and so does one that
no longer needs to be there.
"""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.databases import ROOT
from tests.house.structure import APPS

PAGE: Final = (ROOT / "docs" / "security-model.md").read_text()
ACROSS: Final = "across tenants"
WHOLE: Final = "whole organizations"
_ROW = re.compile(r"^\| `([a-z0-9_/]+\.py)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)

OF_THE_LIBRARY: Final = ("amber/lib/database/", "amber/lib/postgres/")
"""Only here are settings, aliases and connections handled."""
HANDS_OFF: Final = re.compile(
    r"""connections\[\s*(?:["']system["']|SYSTEM)\s*\]|(?:using\(|using=)\s*(?:["']system["']|SYSTEM)"""
    r"""|set_config\(\s*["']amber\.|\bSET\s+(?:LOCAL\s+|SESSION\s+)?(?:ROLE\b|["']?amber\.)"""
    r"""|\bSESSION\s+AUTHORIZATION\b|\bTENANT_ROLE\b|\bSET\s+row_security|\bEVERYBODY\b"""
    r"""|import.*\bSYSTEM\b|\b_tenant\.set\b|\b_connected_as\b"""
)
MAY_SAY_SO: Final = {
    # The defaults of the app's login, which are nobody's.
    "amber/database_roles.py": {"SET amber."},
    # Asks whether the system has a login of its own.
    "amber/front_page/advice.py": {"import SYSTEM"},
}


def modules() -> list[Path]:
    found = [path for app in (*APPS, "amber") for path in (ROOT / app).rglob("*.py")]
    return sorted(
        {
            path
            for path in found
            if not {"tests", "migrations"} & set(path.relative_to(ROOT).parts)
            and not path.relative_to(ROOT).as_posix().startswith(OF_THE_LIBRARY)
        }
    )


def ways_of(source: str) -> set[str]:
    """How a module works for more than one person: by naming `across_tenants` or
    `for_whole_organization`, by `is_whole`."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    found = {ACROSS} if "across_tenants" in names else set()
    if "for_whole_organization" in names:
        found.add(WHOLE)
    if any(is_for_all(node) for node in nodes if isinstance(node, ast.Call)):
        found.add(WHOLE)
    return found


def is_for_all(call: ast.Call) -> bool:
    """Whether the call may make a Tenant with `is_whole`."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    given = {keyword.arg for keyword in call.keywords}
    if name == "Tenant":
        return bool(given & {"is_whole", None}) or len(call.args) > 3
    return name == "replace" and "is_whole" in given


def listed() -> dict[str, set[str]]:
    """The page's table: modules, and how they work. Each has a reason."""
    rows = _ROW.findall(PAGE)
    assert all(len(reason.split()) > 3 for _, _, reason in rows)
    return {module: set(ways.strip().split(", ")) for module, ways, _ in rows}


def test_only_the_listed_modules_work_for_more_than_one_person():
    found = {path.relative_to(ROOT).as_posix(): ways_of(path.read_text()) for path in modules()}
    assert {module: ways for module, ways in found.items() if ways} == listed()


def test_the_modules_are_all_here():
    names = {path.relative_to(ROOT).as_posix() for path in modules()}
    assert {"chats/tasks.py", "amber/web/tenants.py", "amber/lib/workers/leases.py"} < names
    assert len(names) > 300


@pytest.mark.parametrize(
    ("source", "ways"),
    [
        ("from amber.lib.database.tenant import across_tenants", {ACROSS}),
        ("from amber.lib.database.tenant import across_tenants as all_of_them", {ACROSS}),
        ("from amber.lib.database import tenant\nwith tenant.across_tenants(): pass", {ACROSS}),
        ("Tenant(organization_id, is_whole=True)", {WHOLE}),
        ("tenant.Tenant(organization_id, is_whole=it_is)", {WHOLE}),
        ("replace(tenant, is_whole=True)", {WHOLE}),
        ("from amber.lib.database.tenant import for_whole_organization", {WHOLE}),
        ("Tenant(organization_id, None, None, True)", {WHOLE}),
        ("Tenant(**fields)", {WHOLE}),
        ("Tenant(organization_id, user_id)", set()),
        ("from amber.lib.database.tenant import as_tenant", set()),
    ],
)
def test_no_way_is_overlooked(source, ways):
    assert ways_of(source) == ways


def touched(source: str) -> set[str]:
    return {" ".join(said[0].split()) for said in HANDS_OFF.finditer(source)}


def test_nobody_else_touches_roles_settings_and_connections():
    found = {path.relative_to(ROOT).as_posix(): touched(path.read_text()) for path in modules()}
    assert {module: said for module, said in found.items() if said} == MAY_SAY_SO


@pytest.mark.parametrize(
    "source",
    [
        'connections["system"].cursor()',
        "connections[SYSTEM]",
        'Chat.objects.using("system")',
        "chat.save(using='system')",
        "SELECT set_config('amber.user', '*', true)",
        "SET LOCAL amber.user = '*'",
        "SET ROLE amber_owner",
        "SET row_security = off",
        "from amber.lib.database.tenant import SYSTEM",
        "tenant._tenant.set(EVERYBODY)",
    ],
)
def test_no_touch_is_overlooked(source):
    assert touched(source)
