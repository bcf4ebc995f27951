"""Log in as the app does, in each table as each person: what is not theirs is not there.

Nothing of Amber's code stands in between: these are Postgres' own answers to hostile SQL.
"""

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from accounts.tenancy.wall import TABLES
from amber.database_roles import APP, OWNER, SEARCH, SYSTEM, WITHHELD
from tests.wall import attacks
from tests.wall.rows import ALICE, BOB, GUEST, LIBRARY, MALLORY, OF_PERSONS, PEOPLE, RIVAL

EVERY_TABLE = pytest.mark.parametrize("table", TABLES)
EVERYBODY = pytest.mark.parametrize("someone", PEOPLE, ids=lambda each: each.name)
ELSEWHERE = [(ALICE, MALLORY, table) for table in TABLES]
BESIDE = [(ALICE, other, table) for table in sorted(OF_PERSONS) for other in (BOB, GUEST)]
AT_ALL = "permission denied|must be owner|row-level security"


def refuses(login: "psycopg.Connection[Any]", statement: Any, *, saying: str = AT_ALL) -> None:
    with pytest.raises(errors.InsufficientPrivilege, match=saying), login.transaction():
        login.execute(statement)


def is_withheld(table: str, statement: sql.Composed) -> bool:
    """Whether the app may not do that with any row of the table, not even lock it for it."""
    withheld = WITHHELD.get(table, "")
    text = statement.as_string()
    return any(verb in text for verb in withheld.split(", ") if withheld)


# -- Rows of others ------------------------------------------------------------------------------


@EVERYBODY
@EVERY_TABLE
def test_whatever_reads_reaches_ones_own_rows(walled, table, someone):
    for statement in attacks.readings(table):
        with walled.acting(someone.settings()) as login:
            if is_withheld(table, statement):
                refuses(login, statement)
                continue
            found = {pk for (pk,) in login.execute(statement).fetchall()}
        assert found == walled.rows.visible_to(someone, table), statement.as_string()


@EVERYBODY
@EVERY_TABLE
def test_what_writes_without_reading_reaches_ones_own_rows(walled, table, someone):
    for statement in attacks.blind_writings(table):
        with walled.acting(someone.settings()) as login:
            if is_withheld(table, statement):
                refuses(login, statement)
                continue
            changed = login.execute(statement).rowcount
        assert changed == len(walled.rows.visible_to(someone, table)), statement.as_string()


@pytest.mark.parametrize(("someone", "other", "table"), ELSEWHERE + BESIDE)
def test_nobody_writes_rows_for_another(walled, table, someone, other):
    """Neither a new one, nor over the other's, nor by giving an own one away."""
    ids = walled.rows.ids[table]
    with psycopg.connect(walled.url) as server:
        theirs = attacks.row_of(server, table, ids[other.name])
    moves = list(attacks.moves(table, theirs, ids[someone.name]))
    if someone.organization_id == other.organization_id:
        moves = [each for each in moves if "organization_id" not in each.as_string()]
    statements = [*attacks.copies(table, theirs), *moves]
    own = {str(pk) for pk in walled.rows.visible_to(someone, table)}
    with walled.acting(someone.settings()) as login:
        for statement in statements:
            refuses(login, statement, saying=AT_ALL if table in WITHHELD else "row-level")
        assert own == {str(pk) for (pk,) in login.execute(attacks.readings(table)[0])}


@EVERY_TABLE
def test_rows_of_whole_organizations_are_of_that_one(walled, table):
    """A worker acts for all persons of an organization, and for none of another."""
    with walled.acting(ALICE.settings(user="*")) as login:
        found = {pk for (pk,) in login.execute(attacks.readings(table)[0])}
    ids = walled.rows.ids[table]
    assert found == {pk for name, pk in ids.items() if name != MALLORY.name}


@EVERY_TABLE
def test_nobody_is_refused(walled, table):
    """Without settings, with empty ones, and with rubbish in the organization: an error, no silence."""
    table_name = sql.Identifier(table)
    reads = sql.SQL("SELECT count(*) FROM {}").format(table_name)
    for settings in ({}, {"organization": ""}, {"organization": "*"}, {"organization": "' OR 1=1"}):
        with (
            walled.acting(settings) as login,
            pytest.raises(errors.InvalidTextRepresentation, match="uuid"),
        ):
            login.execute(reads)


@pytest.mark.parametrize("table", sorted(OF_PERSONS))
def test_nobody_in_an_organization_sees_what_is_a_person_s(walled, table):
    """Neither without a user, nor with one that rubbish names."""
    no_own = walled.rows.visible_to(LIBRARY, table)
    for settings in (
        {"user": ""},
        {"user": "%"},
        {"user": "' OR 1=1"},
        {"user": "null"},
        {"user": "**"},
    ):
        with walled.acting(ALICE.settings(**settings)) as login:
            assert {pk for (pk,) in login.execute(attacks.readings(table)[0])} <= no_own


def test_a_person_of_two_organizations_sees_the_names_of_both_and_changes_one(walled):
    with psycopg.connect(walled.url) as server:
        server.execute(
            "INSERT INTO accounts_membership (id, created_at, updated_at, role, user_id,"
            " organization_id) VALUES (gen_random_uuid(), now(), now(), 'owner', %s, %s)",
            [ALICE.user_id, RIVAL],
        )
        server.commit()
        try:
            with walled.acting(ALICE.settings()) as login:
                seen = {pk for (pk,) in login.execute("SELECT id FROM accounts_organization")}
                assert seen == {ALICE.organization_id, RIVAL}
                for table in ("accounts_organization", "accounts_membership"):
                    mine = "id" if table == "accounts_organization" else "organization_id"
                    for verb in (f"UPDATE {table} SET updated_at = now()", f"DELETE FROM {table}"):
                        changed = login.execute(f"{verb} WHERE {mine} = %s", [RIVAL])
                        assert changed.rowcount == 0
        finally:
            server.execute(
                "DELETE FROM accounts_membership WHERE user_id = %s AND organization_id = %s",
                [ALICE.user_id, RIVAL],
            )


# -- What the login may do at all ----------------------------------------------------------------


def test_the_app_has_no_power_and_belongs_to_nobody(walled):
    with walled.login(APP) as login:
        assert (
            login.execute(
                "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolinherit"
                " FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            == (False,) * 6
        )
        owned = "SELECT count(*) FROM pg_class WHERE relowner = to_regrole(current_user)"
        assert login.execute(owned).fetchone() == (0,)
        member = "SELECT count(*) FROM pg_auth_members WHERE member = to_regrole(current_user)"
        assert login.execute(member).fetchone() == (0,)


def test_the_app_becomes_nobody_else(walled):
    with walled.login(APP) as login:
        roles = [name for (name,) in login.execute("SELECT rolname FROM pg_roles")]
        assert {OWNER, SEARCH, SYSTEM} < set(roles)
        for role in {*roles, "amber"} - {APP}:
            for verb in ("SET ROLE", "SET SESSION AUTHORIZATION"):
                refuses(login, sql.SQL(f"{verb} {{}}").format(sql.Identifier(role)))


@EVERY_TABLE
def test_the_app_changes_no_policy(walled, table):
    name = sql.Identifier(table)
    statements = (
        "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE {} NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON {} USING (true)",
        "ALTER POLICY tenant ON {} USING (true)",
        "DROP POLICY tenant_floor ON {}",
        "ALTER TABLE {} OWNER TO amber_app",
        "TRUNCATE {}",
        "CREATE TRIGGER peek AFTER INSERT ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE peek AS ON INSERT TO {} DO ALSO NOTHING",
        "CREATE TABLE pg_temp.child () INHERITS ({})",
        "CREATE STATISTICS pg_temp.peek (mcv) ON ctid, xmin FROM {}",
    )
    with walled.acting(ALICE.settings()) as login:
        for statement in statements:
            refuses(login, sql.SQL(statement).format(name))
        refuses(login, sql.SQL("SET row_security = off; SELECT FROM {}").format(name))


def test_the_app_makes_nothing_and_reaches_no_file(walled):
    statements = (
        "CREATE TABLE public.mine ()",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR public.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "ALTER ROLE amber_app BYPASSRLS",
        "ALTER ROLE amber_system PASSWORD 'mine'",
        "GRANT amber_owner TO amber_app",
        "SET session_replication_role = replica",
        "ALTER SYSTEM SET row_security = off",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY (SELECT 1) TO '/tmp/mine'",
        "SELECT pg_read_file('PG_VERSION')",
        "SELECT * FROM pg_authid",
        "SELECT * FROM pg_statistic",
        "ALTER FUNCTION public.amber_memories_with(tsquery[]) OWNER TO amber_app",
        "CREATE OR REPLACE FUNCTION public.amber_memories_with(queries tsquery[])"
        " RETURNS TABLE (number integer, id uuid) LANGUAGE sql AS 'SELECT 1, id FROM memory_memory'",
    )
    with walled.new_login(APP) as login:
        login.autocommit = True
        for statement in statements:
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(statement)


def test_the_app_rewrites_no_history(walled):
    with walled.login(APP) as login:
        assert login.execute("SELECT count(*) FROM django_migrations").fetchone() != (0,)
        for table, verbs in WITHHELD.items():
            if "DELETE" in verbs:
                refuses(login, f"DELETE FROM {table}")
            if "UPDATE" in verbs:
                refuses(login, f"UPDATE {table} SET id = id")
        refuses(
            login, "INSERT INTO django_migrations (app, name, applied) VALUES ('a', 'b', now())"
        )


def test_copies_and_statistics_show_no_more(walled):
    """COPY keeps to the policies, or refuses; what ANALYZE saw of walled tables is hidden."""
    with psycopg.connect(walled.url, autocommit=True) as server:
        server.execute("ANALYZE chats_chatmessage, accounts_user")
    with walled.acting(ALICE.settings()) as login:
        with login.cursor().copy("COPY chats_chatmessage (id) TO STDOUT") as copied:
            ids = {pk for (pk,) in copied.rows()}
        own = walled.rows.visible_to(ALICE, "chats_chatmessage")
        assert ids == {str(pk) for pk in own}
        with pytest.raises(errors.FeatureNotSupported), login.transaction():
            login.execute("COPY chats_chatmessage FROM STDIN")
        seen = {t for (t,) in login.execute("SELECT DISTINCT tablename FROM pg_stats")}
        assert "accounts_user" in seen
        assert not seen & set(TABLES)


def test_a_function_of_ones_own_is_asked_after_the_policies(walled):
    """A cheap condition that tells what it is given could run first; Postgres lets it not."""
    heard: list[str] = []
    with walled.new_login(APP) as login:
        for name, value in ALICE.settings().items():
            login.execute("SELECT set_config(%s, %s, true)", [f"amber.{name}", value])
        login.add_notice_handler(lambda said: heard.append(said.message_primary or ""))
        login.execute(
            "CREATE FUNCTION pg_temp.tell(said text) RETURNS bool LANGUAGE plpgsql COST 0.0000001"
            " AS $$ BEGIN RAISE WARNING '%', said; RETURN true; END $$"
        )
        login.execute("SELECT FROM memory_memory WHERE pg_temp.tell(id::text)")
        login.execute("EXPLAIN ANALYZE DELETE FROM memory_memory WHERE pg_temp.tell(id::text)")
        login.rollback()
    own = walled.rows.visible_to(ALICE, "memory_memory")
    assert set(heard) == {str(pk) for pk in own}


def test_the_system_passes_all_policies_and_is_no_superuser(walled):
    with walled.login(SYSTEM) as login:
        assert login.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication"
            " FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (False, True, False, False, False)
        for table in TABLES:
            found = {pk for (pk,) in login.execute(attacks.readings(table)[0])}
            assert found == set(walled.rows.ids[table].values()), table


@pytest.mark.parametrize("role", [OWNER, SEARCH])
def test_nobody_logs_in_as_the_roles_that_own(walled, role):
    with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
        walled.new_login(role)
