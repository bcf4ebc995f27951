"""Hold the declared walls against the models and against the database: no table without one."""

from typing import Any

import psycopg
import pytest
from django.apps import apps

from accounts.tenancy.wall import TABLES, build_wall
from accounts.tenant_rows import TenantRow
from tests.wall import attacks
from tests.wall.rows import ALICE, MALLORY, OF_PERSONS

_POLICIES = """
SELECT tablename, policyname, permissive, roles::text[], cmd, qual, with_check FROM pg_policies
WHERE schemaname = 'public' ORDER BY 1, 2
"""
_UNWALLED = """
SELECT DISTINCT class.relname FROM pg_class AS class
LEFT JOIN pg_attribute AS a ON a.attrelid = class.oid AND a.attname = 'organization_id'
LEFT JOIN pg_constraint AS fk ON fk.conrelid = class.oid AND fk.contype = 'f'
WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'p', 'm', 'f', 'v')
AND (
    a.attname IS NOT NULL OR class.oid = ANY(%(walled)s::regclass[])
    OR fk.confrelid = ANY(%(walled)s::regclass[])
)
AND NOT (
    class.relrowsecurity AND class.relforcerowsecurity
    AND EXISTS (
        SELECT FROM pg_policy
        WHERE polrelid = class.oid AND NOT polpermissive AND polcmd = '*'
    )
    AND EXISTS (SELECT FROM pg_policy WHERE polrelid = class.oid AND polpermissive)
)
"""
"""Tables with an organization, or with a reference to a walled table, and without a whole wall."""


def unwalled(server: "psycopg.Connection[Any]") -> set[str]:
    rows = server.execute(_UNWALLED, {"walled": list(TABLES)})
    return {name for (name,) in rows}


@pytest.fixture
def server(walled):
    with psycopg.connect(walled.url) as server:
        yield server
        server.rollback()


def hangs_on_tenants(model: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Whether its rows are a tenant's: by a column, or by what they cannot be without."""
    if any(field.column == "organization_id" for field in model._meta.concrete_fields):
        return True
    owners = [
        field.related_model
        for field in model._meta.concrete_fields
        if field.is_relation and not field.null and field.related_model not in {*seen, model}
    ]
    return any(hangs_on_tenants(owner, seen | {model}) for owner in owners)


def test_every_model_of_a_tenant_s_has_a_wall():
    models = [m for m in apps.get_models(include_auto_created=True) if not m._meta.proxy]
    of_tenants = {m._meta.db_table for m in models if hangs_on_tenants(m)}
    assert of_tenants | {"accounts_organization"} == set(TABLES)
    assert {m._meta.db_table for m in models if issubclass(m, TenantRow)} <= set(TABLES)


def test_what_names_a_person_and_a_guest_is_that_person_s():
    """But for the ledger, which an organization's admins read."""
    both = {
        table
        for table, model in (
            (m._meta.db_table, m) for m in apps.get_models() if m._meta.db_table in TABLES
        )
        if {"user_id", "guest_id"} <= {field.column for field in model._meta.concrete_fields}
    }
    assert both - {"providers_usagerecord"} <= OF_PERSONS


def test_no_table_is_without_a_wall(server):
    assert unwalled(server) == set()


NEW = (
    "CREATE TABLE chats_note (id uuid PRIMARY KEY, organization_id uuid)",
    "CREATE TABLE chats_note (id uuid, chat_id uuid REFERENCES chats_chat)",
    "CREATE VIEW chats_note AS SELECT * FROM chats_chat",
    "CREATE MATERIALIZED VIEW chats_note AS SELECT * FROM chats_chat",
    "CREATE TABLE chats_note (id uuid, organization_id uuid) PARTITION BY HASH (id)",
    "CREATE TABLE chats_note (id uuid, organization_id uuid);"
    "ALTER TABLE chats_note ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY tenant ON chats_note USING (true);"
    "CREATE POLICY floor ON chats_note AS RESTRICTIVE USING (true)",
    "CREATE TABLE chats_note (id uuid, organization_id uuid);"
    "ALTER TABLE chats_note ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
    "CREATE POLICY tenant ON chats_note USING (true)",
)


@pytest.mark.parametrize("statement", NEW)
def test_a_new_one_would_be_named(server, statement):
    server.execute(statement)
    assert unwalled(server) == {"chats_note"}


@pytest.mark.parametrize("table", TABLES)
def test_a_wall_that_is_torn_down_would_be_named(server, table):
    for statement in ("DISABLE ROW LEVEL SECURITY", "NO FORCE ROW LEVEL SECURITY"):
        with server.transaction(force_rollback=True):
            server.execute(f"ALTER TABLE {table} {statement}")
            assert unwalled(server) == {table}
    server.execute(f"DROP POLICY tenant_floor ON {table}")
    assert unwalled(server) == {table}


class Introspected:
    """As much of Django's connection as `build_wall` asks for."""

    def __init__(self, server: "psycopg.Connection[Any]") -> None:
        self.cursor = server.cursor
        self.introspection = self

    def table_names(self, _cursor: Any) -> list[str]:
        return list(TABLES)


def test_the_policies_are_the_declared_ones(server):
    """No more, no fewer, and word for word as Postgres writes down what is declared."""
    held = server.execute(_POLICIES).fetchall()
    for table in TABLES:
        for (name,) in server.execute(
            "SELECT policyname FROM pg_policies WHERE tablename = %s", [table]
        ).fetchall():
            server.execute(f"DROP POLICY {name} ON {table}")
    assert server.execute(_POLICIES).fetchall() == []
    build_wall(Introspected(server))
    assert server.execute(_POLICIES).fetchall() == held
    assert {row[0] for row in held} == set(TABLES)
    changes = {"tenant_insert", "tenant_update", "tenant_delete"}
    assert {row[1] for row in held} == {"tenant", "tenant_floor", "tenant_seen"} | changes


def test_building_it_twice_changes_nothing(server):
    held = server.execute(_POLICIES).fetchall()
    build_wall(Introspected(server))
    assert server.execute(_POLICIES).fetchall() == held


@pytest.mark.parametrize("table", TABLES)
def test_a_policy_that_somebody_adds_does_not_reach_below_the_floor(walled, table):
    """One that lets everything in, by mistake: organizations are still apart."""
    with psycopg.connect(walled.url) as server:
        server.execute(f"CREATE POLICY mistake ON {table} USING (true) WITH CHECK (true)")
        server.execute("SET LOCAL ROLE amber_app")
        for name, value in ALICE.settings().items():
            server.execute("SELECT set_config(%s, %s, true)", [f"amber.{name}", value])
        found = {pk for (pk,) in server.execute(attacks.readings(table)[0])}
        server.rollback()
    assert walled.rows.ids[table][MALLORY.name] not in found
    assert walled.rows.visible_to(ALICE, table) <= found
