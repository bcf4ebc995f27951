"""Let pgrls judge the policies of the migrated database: its rules, its matrix, and its proofs by Z3.

pgrls.toml names what is exempt and why; an exemption that nothing needs any more fails here.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgrls.coverage import ExercisedTuple, exercised_from_sql, write_artifact

from accounts.tenancy.wall import TABLES
from amber.database_roles import APP, OWNER, SEARCH, SEARCHED, WITHHELD
from tests.fixtures.databases import ROOT
from tests.wall import attacks
from tests.wall.database import walled_database
from tests.wall.rows import pk_of

CONFIGURATION = ROOT / "pgrls.toml"

UNPROVEN = {
    # Beyond what the prover can decide; tests/wall/test_log_in_as_app.py asks Postgres about them.
    "accounts_membership": "people see of themselves that they are in other organizations",
    "accounts_organization": "the same: its floor looks into the table of memberships",
    "providers_budgetcounter": "hangs on a budget, whose policies decide",
    "providers_budgetreservation": "hangs on a counter",
}
CASCADES = {
    # Postgres deletes these with the row that they refer to, past all policies. Each reference
    # names the organization, too, so that it is the same.
    ("accounts_auditchain", "DELETE"),
    ("accounts_auditevent", "DELETE"),
    ("accounts_groupmember", "DELETE"),
    ("assistants_assistantgrant", "DELETE"),
    ("libraries_librarygrant", "DELETE"),
    ("tools_toolgrant", "DELETE"),
}


def run(url: str, *arguments: str, expected: int | None = 0) -> str:
    """What pgrls says of this database; `expected` is its exit status, None for any."""
    command = [sys.executable, "-m", "pgrls", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={"DATABASE_URL": url}, capture_output=True, text=True, check=False
    )
    assert expected in (done.returncode, None), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def url(walled: Any) -> str:
    made: str = walled.url
    return made


@pytest.fixture(scope="module")
def url_of_floors() -> Iterator[str]:
    """The same database where the floor is all there is: the policies above it let in no less."""
    with walled_database() as floors:
        with psycopg.connect(floors.url) as server:
            declared = server.execute(
                "SELECT tablename, qual, with_check FROM pg_policies"
                " WHERE policyname = 'tenant_floor' AND permissive = 'RESTRICTIVE'"
            )
            for table, seen, written in declared.fetchall():
                server.execute(
                    f"ALTER POLICY tenant ON {table} USING ({seen}) WITH CHECK ({written})"
                )
                server.execute(f"DROP POLICY IF EXISTS tenant_seen ON {table}")
        yield floors.url


def test_no_rule_is_broken(url):
    assert "no issues found" in run(url, "lint")


def test_every_exemption_is_needed(url, tmp_path):
    """Without the configuration, pgrls finds exactly what it exempts."""
    bare = tmp_path / "pgrls.toml"
    bare.write_text("")
    said = run(url, "lint", "--config", str(bare), "--format", "json", expected=1)
    found: dict[str, set[str]] = {}
    for each in json.loads(said)["violations"]:
        found.setdefault(each["rule_id"], set()).add(each["location"].partition(" ")[0])
    rules = tomllib.loads(CONFIGURATION.read_text())["lint"]
    exempt = {rule: set(said["allowlist"]) for rule, said in rules["rules"].items()}
    for rule in rules["disable"]:
        assert found.pop(rule), rule
    assert found == exempt


def test_who_reaches_what(url):
    """The whole matrix: each role, table and command."""
    said = json.loads(run(url, "matrix", "--roles", f"{APP},{SEARCH},PUBLIC", "--format", "json"))
    for row in said["rows"]:
        table, command = row["table"], row["command"]
        verdicts = {role: cell["verdict"] for role, cell in row["access"].items()}
        name = table.removeprefix("public.")
        app = "conditional" if name in TABLES else "open"
        by = row["access"][APP]["note"] or ""
        if name in SEARCHED and by.startswith("through SECURITY DEFINER public.amber_"):
            app = "open"  # the matrix sees that the functions may read, not what they return
        if command == "TRUNCATE" or command in WITHHELD.get(name, ""):
            app = "denied"
        if (name, command) in CASCADES:
            app = "undecided"
        search = "open" if name in SEARCHED and command == "SELECT" else "denied"
        assert verdicts[APP] == app, row
        assert verdicts[SEARCH] == search, row
        assert verdicts.get("PUBLIC", "denied") == "denied", row
    assert {row["table"].removeprefix("public.") for row in said["rows"]} > set(TABLES)


def test_no_function_of_another_s_rights_reads_vectors(url):
    """Search by vectors is the caller's own, under the policies; only words have such functions."""
    assert json.loads(run(url, "vector", "--probe-role", APP, "--format", "json"))["paths"] == []


def test_what_postgres_deletes_by_itself_is_of_the_same_organization(url):
    """Foreign keys look past policies: each that cascades must name the organization."""
    with psycopg.connect(url) as server:
        cascading = server.execute(
            "SELECT conrelid::regclass::text, confrelid::regclass::text, (SELECT count(*) FROM"
            " pg_attribute WHERE attrelid = conrelid AND attnum = ANY(conkey)"
            " AND attname = 'organization_id') FROM pg_constraint"
            " WHERE contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype <> 'a')"
        ).fetchall()
    assert {(table, "DELETE") for table, _, _ in cascading} == CASCADES
    assert [row for row in cascading if not row[2]] == []


@pytest.mark.parametrize("mode", ["anon", "cross-tenant", "write", "escalation", "reachability"])
def test_no_leak_can_be_proven(url, mode):
    assert (
        json.loads(run(url, "verify", "--mode", mode, "--format", "json"))["summary"]["leak"] == 0
    )


@pytest.mark.parametrize("mode", ["cross-tenant", "write"])
def test_the_floor_alone_is_proven_to_keep_organizations_apart(url_of_floors, mode):
    """Whatever policy is added later. By Z3, for every row and every setting."""
    arguments = ("verify", "--mode", mode, "--format", "json")
    verdicts = {
        table["table"].removeprefix("public."): table["verdict"]
        for table in json.loads(run(url_of_floors, *arguments, expected=None))["tables"]
    }
    assert set(verdicts) == set(TABLES)
    assert {table for table, verdict in verdicts.items() if verdict != "isolated"} == set(UNPROVEN)


def test_a_hole_would_be_found(url_of_floors):
    """With one table's policies open the proof fails there, and the rules speak up."""
    with psycopg.connect(url_of_floors) as server:
        server.execute("DROP POLICY tenant_floor ON tools_tool")
        server.execute("ALTER POLICY tenant ON tools_tool USING (true) WITH CHECK (true)")
    anonymous = ("verify", "--mode", "anon", "--format", "json")
    found = json.loads(run(url_of_floors, *anonymous, expected=1))
    assert [t["table"] for t in found["tables"] if t["verdict"] == "leak"] == ["public.tools_tool"]
    assert "public.tools_tool" in run(url_of_floors, "lint", expected=1)


def test_every_policy_is_attacked(url, tmp_path):
    """By the statements of tests/wall/test_log_in_as_app.py, in pgrls' own count."""
    with psycopg.connect(url) as server:
        statements = [
            statement.as_string(server)
            for table in TABLES
            for statement in (
                *attacks.readings(table),
                *attacks.blind_writings(table),
                *attacks.copies(table, {pk_of(table): None}),
            )
        ]
    exercised = {
        ExercisedTuple(schema, relation, APP, command)
        for statement in statements
        for schema, relation, command in exercised_from_sql(statement)
    }
    artifact = Path(tmp_path / "coverage.json")
    write_artifact(str(artifact), exercised, generated_at=datetime.now(UTC))
    run(url, "coverage", "--coverage", str(artifact), "--fail-under", "100")


def test_nobody_else_has_a_role_of_power(url):
    """The superuser of the tests aside: who passes policies is named in pgrls.toml."""
    with psycopg.connect(url) as server:
        powerful = server.execute(
            "SELECT rolname FROM pg_roles WHERE rolbypassrls AND NOT rolsuper"
        ).fetchall()
        members = server.execute(
            "SELECT member::regrole::text, roleid::regrole::text FROM pg_auth_members"
            " WHERE roleid IN (SELECT oid FROM pg_roles WHERE rolbypassrls)"
        ).fetchall()
    rules = tomllib.loads(CONFIGURATION.read_text())["lint"]["rules"]
    assert {name for (name,) in powerful} == set(rules["SEC016"]["allowlist"])
    assert set(members) == {("amber_system", OWNER), (OWNER, SEARCH)}
