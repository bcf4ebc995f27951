"""Call the functions that search, or tell what was granted, with the rights of a role of their own, as
a hostile app would.

No policy binds them: they alone keep one tenant's words from another. Whatever they are given and
whatever stands around, they return ids of rows that the policies show to whoever asks.
"""

import contextlib
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from accounts.tenancy.wall_functions import FUNCTIONS, GRANTED
from amber.database_roles import APP, SEARCH, SEARCHED
from tests.wall.database import WalledDatabase
from tests.wall.rows import ALICE, BOB, GUEST, LIBRARY, MALLORY, PEOPLE, WORD, Someone

SEARCHES = {
    # function: the table whose ids it returns
    "amber_chunks_with": "libraries_documentchunk",
    "amber_blocks_before": "chats_messageblock",
    "amber_blocks_with": "chats_messageblock",
    "amber_memories_with": "memory_memory",
    "amber_messages_of": "chats_chatmessage",
    "amber_messages_with": "chats_chatmessage",
    "amber_granted_assistants": "assistants_assistant",
    "amber_granted_libraries": "libraries_library",
    "amber_granted_tools": "tools_tool",
}
EVERY_FUNCTION = pytest.mark.parametrize("function", SEARCHES)
EVERY_SEARCH = pytest.mark.parametrize("function", FUNCTIONS)
EVERYBODY = pytest.mark.parametrize("someone", PEOPLE, ids=lambda each: each.name)
TRICKS = (
    # Each is what the caller's session could hold before it asks.
    "CREATE TEMP TABLE libraries_documentchunk AS SELECT gen_random_uuid() AS id;"
    "CREATE TEMP TABLE chats_chat AS SELECT gen_random_uuid() AS id;"
    "SET LOCAL search_path = pg_temp, public",
    "CREATE FUNCTION pg_temp.yes(tsvector, tsquery) RETURNS bool LANGUAGE sql AS 'SELECT true';"
    "CREATE OPERATOR pg_temp.@@ (LEFTARG = tsvector, RIGHTARG = tsquery, FUNCTION = pg_temp.yes);"
    "SET LOCAL search_path = pg_temp, pg_catalog",
    "CREATE FUNCTION pg_temp.same(uuid, uuid) RETURNS bool LANGUAGE sql AS 'SELECT true';"
    "CREATE OPERATOR pg_temp.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = pg_temp.same);"
    "SET LOCAL search_path = pg_temp, pg_catalog",
    "CREATE FUNCTION pg_temp.current_setting(text, bool) RETURNS text LANGUAGE sql"
    f" AS 'SELECT ''{MALLORY.organization_id}''';"
    "CREATE FUNCTION pg_temp.unnest(tsquery[]) RETURNS SETOF tsquery LANGUAGE sql"
    " AS 'SELECT ''''::tsquery';"
    "SET LOCAL search_path = pg_temp, pg_catalog",
    "CREATE DOMAIN pg_temp.uuid AS text; SET LOCAL search_path = pg_temp, pg_catalog, public",
)


def found(login: "psycopg.Connection[Any]", walled: WalledDatabase, function: str) -> set[Any]:
    """All ids that one call, or a call for each chat there is, returns: of everybody's rows."""
    queries = sql.SQL("ARRAY[{}::tsquery, {}::tsquery]").format(WORD, "!nowhere")
    ids = walled.rows.ids
    calls: list[Any]
    if function in ("amber_blocks_before", "amber_blocks_with"):
        before = [sql.Literal(2**31 - 1)] if function == "amber_blocks_before" else []
        calls = [
            sql.SQL(", ").join([queries, sql.Literal(chat and str(chat)), *before])
            for chat in (*ids["chats_chat"].values(), None)
        ]
    elif function == "amber_chunks_with":
        libraries, documents = (
            f"{{{','.join(map(str, ids[table].values()))}}}"
            for table in ("libraries_library", "libraries_document")
        )
        calls = [
            sql.SQL("{}, {}, {}, {}, {}").format(
                queries, *map(sql.Literal, (str(model), libraries, some, 1_000))
            )
            for model in models_of(walled)
            for some in (None, documents)
        ]
    elif function in GRANTED:
        calls = [sql.SQL("")]
    elif function == "amber_messages_of":
        calls = [sql.SQL("'!nowhere'::tsquery, '!nobody'::tsquery")]
    else:
        calls = [queries if function == "amber_memories_with" else sql.SQL("'!nowhere'::tsquery")]
    reached = set()
    for call in calls:
        asked = sql.SQL("SELECT id FROM public.{}({})").format(sql.Identifier(function), call)
        reached |= {pk for (pk,) in login.execute(asked)}
    return reached


def models_of(walled: WalledDatabase) -> list[Any]:
    with psycopg.connect(walled.url) as server:
        rows = server.execute("SELECT DISTINCT embedding_model_id FROM libraries_documentchunk")
        return [pk for (pk,) in rows]


def test_each_function_of_another_s_rights_is_attacked(walled):
    """Any other function that runs with its owner's rights must be added here."""
    with psycopg.connect(walled.url) as server:
        rows = server.execute(
            "SELECT proname, proconfig, pg_get_userbyid(proowner) FROM pg_proc"
            " WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        ).fetchall()
    assert {name for name, _, _ in rows} == set(SEARCHES) == set(FUNCTIONS) | set(GRANTED)
    for _, settings, owner in rows:
        assert set(settings) - {"enable_seqscan=off"} == {"search_path=pg_catalog, pg_temp"}
        assert owner == SEARCH


@EVERYBODY
@EVERY_FUNCTION
def test_it_finds_what_the_policies_show(walled, function, someone):
    with walled.acting(someone.settings()) as login:
        assert found(login, walled, function) == walled.rows.visible_to(someone, SEARCHES[function])


@pytest.mark.parametrize("trick", TRICKS)
@EVERY_FUNCTION
def test_nothing_around_it_changes_what_it_finds(walled, function, trick):
    with walled.new_login(APP) as login:
        login.execute("SET search_path = public")
        try:
            for name, value in ALICE.settings().items():
                login.execute(
                    "SELECT pg_catalog.set_config(%s, %s, true)", [f"amber.{name}", value]
                )
            login.execute(trick)
            reached = {str(pk) for pk in found(login, walled, function)}
        finally:
            login.rollback()
    assert reached == {str(pk) for pk in walled.rows.visible_to(ALICE, SEARCHES[function])}


@EVERY_FUNCTION
def test_nobody_finds_nothing(walled, function):
    for settings in ({}, {"organization": ""}, {"organization": "*", "user": "*"}):
        with (
            walled.acting(settings) as login,
            contextlib.suppress(errors.InvalidTextRepresentation),  # what most of them say
        ):
            assert not found(login, walled, function)


@pytest.mark.parametrize("function", sorted(set(SEARCHES) - {"amber_chunks_with"}))
def test_nobody_in_an_organization_finds_nothing(walled, function):
    for settings in ({"user": ""}, {"user": "%"}, {"user": "web:visitor' --"}, {"user": "null"}):
        with walled.acting(ALICE.settings(**settings)) as login:
            assert not found(login, walled, function)


@EVERY_SEARCH
def test_a_worker_for_all_of_an_organization_finds_no_more(walled, function):
    ids = walled.rows.ids[SEARCHES[function]]
    with walled.acting(ALICE.settings(user="*")) as login:
        assert found(login, walled, function) == {
            ids[each.name] for each in (ALICE, BOB, GUEST, LIBRARY) if each.name in ids
        }


@EVERY_SEARCH
def test_without_arguments_it_finds_nothing(walled, function):
    with walled.acting(ALICE.settings()) as login:
        count = login.execute(
            "SELECT pronargs FROM pg_proc WHERE proname = %s", [function]
        ).fetchone()
        assert count is not None
        nothing = sql.SQL(", ").join([sql.NULL] * count[0])
        call = sql.SQL("SELECT id FROM public.{}({})").format(sql.Identifier(function), nothing)
        assert login.execute(call).fetchall() == []


def test_their_role_reads_what_they_search_and_nothing_else(walled):
    with psycopg.connect(walled.url) as server:
        granted = server.execute(
            "SELECT DISTINCT relname, privilege_type FROM pg_class, aclexplode(relacl)"
            " WHERE grantee = to_regrole(%s)",
            [SEARCH],
        )
        assert set(granted) == {(table, "SELECT") for table in SEARCHED}
        owned = server.execute(
            "SELECT proname FROM pg_proc WHERE proowner = to_regrole(%s)", [SEARCH]
        )
        assert {name for (name,) in owned} == set(FUNCTIONS) | set(GRANTED)


def test_the_public_may_not_call_them(walled):
    with psycopg.connect(walled.url) as server:
        callers = server.execute(
            "SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END"
            " FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner)))"
            " WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        )
        assert {name for (name,) in callers} == {"amber_app", "amber_system", SEARCH}


def test_a_rival_who_counts_the_words_counts_their_own(walled):
    """Neither the planner's estimate nor the order of the answer tells what others have."""
    someone: Someone = MALLORY
    with walled.acting(someone.settings()) as login:
        count = login.execute("SELECT count(*) FROM amber_messages_with('!nowhere')").fetchone()
        plan = login.execute("EXPLAIN SELECT FROM amber_messages_with('!nowhere')").fetchall()
    assert count == (1,)
    assert "rows=100 " in str(plan), "as declared, whatever is there"
