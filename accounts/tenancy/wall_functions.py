"""Declare the functions that look at rows with the rights of a role of their own.

Some tell policies what a person's groups were granted: a policy that read those tables itself would
have to be planned with theirs, in each statement. The others search by words: Postgres trusts no
policy with `@@`.

A policy is looked at before any operator that might tell what it saw (that is not `LEAKPROOF`), and
`@@` is none: under policies alone the index of words would not be used, and every row of the tenant
be read (measured: 58 ms for one word among 61,443 chunks, against 0.08). So these functions look
into the index as a role that no policy binds. None takes a tenant: they read the settings
themselves, and return ids of rows that the policies would show. Whoever asked reads the rows under
those policies.
https://www.postgresql.org/docs/18/rules-privileges.html
"""

from typing import Any, Final

from accounts.tenancy.wall import ORGANIZATION, PERSON

_ASKED: Final = "unnest(queries) WITH ORDINALITY AS asked (query, number)"

# OFFSET 0 keeps the planner to the index of words, which a word of the library, the chat or the
# person makes small: by another it would unpack the words of every row for each word asked.
FUNCTIONS: Final = {
    "amber_chunks_with": f"""
(queries tsquery[], model uuid, libraries uuid[], documents uuid[], most integer)
RETURNS TABLE (number integer, id uuid) ROWS 100 AS $$
    SELECT asked.number::integer, found.id FROM {_ASKED} CROSS JOIN LATERAL (
        SELECT indexed.id FROM (
            SELECT c.id, c.organization_id, c.library_id, c.embedding_model_id, c.document_id
            FROM public.libraries_documentchunk AS c WHERE c.search @@ asked.query OFFSET 0
        ) AS indexed
        WHERE {ORGANIZATION.floor} AND embedding_model_id = model AND library_id = ANY(libraries)
        AND (documents IS NULL OR document_id = ANY(documents)) LIMIT most + 1
    ) AS found
$$""",  # noqa: S608  (no value is formatted in)
    # `blocks` says how many there are, with those that have none of the words: counted here, where the index of
    # the active path alone tells.
    "amber_blocks_before": f"""
(queries tsquery[], chat uuid, before integer)
RETURNS TABLE (number integer, id uuid, blocks bigint) ROWS 100 AS $$
    SELECT asked.number::integer, found.id, (
        SELECT count(*) FROM public.chats_messageblock AS b
        WHERE b.chat_id = chat AND b.on_active_path AND b.last_position < before
    ) FROM {_ASKED} CROSS JOIN LATERAL (
        SELECT b.id, b.organization_id, b.chat_id, b.on_active_path, b.last_position
        FROM public.chats_messageblock AS b WHERE b.search @@ asked.query OFFSET 0
    ) AS found
    WHERE {ORGANIZATION.floor} AND found.chat_id = chat AND EXISTS (
        SELECT FROM public.chats_chat AS c WHERE c.id = chat AND ({PERSON.allowed})
    ) AND found.on_active_path AND found.last_position < before
$$""",  # noqa: S608  (no value is formatted in)
    "amber_memories_with": f"""
(queries tsquery[]) RETURNS TABLE (number integer, id uuid) ROWS 100 AS $$
    SELECT asked.number::integer, found.id FROM {_ASKED} CROSS JOIN LATERAL (
        SELECT m.id, m.organization_id, m.user_id, m.guest_id FROM public.memory_memory AS m
        WHERE m.search @@ asked.query OFFSET 0
    ) AS found
    WHERE {PERSON.floor} AND ({PERSON.allowed})
$$""",  # noqa: S608  (no value is formatted in)
    # Messages that an older release wrote lack the person's word: while there are any, it is not asked for.
    # Without sequential scans the planner looks for them in their index, whatever its statistics say.
    "amber_messages_of": f"""
(query tsquery, person tsquery) RETURNS TABLE (id uuid) ROWS 100 SET enable_seqscan = off AS $$
    SELECT found.id FROM (
        SELECT m.id, m.organization_id, m.chat_id FROM public.chats_chatmessage AS m
        WHERE m.search @@ (SELECT CASE
            WHEN EXISTS (SELECT FROM public.chats_chatmessage WHERE words_version = 0) THEN query
            ELSE person && query END) OFFSET 0
    ) AS found
    WHERE {ORGANIZATION.floor} AND EXISTS (
        SELECT FROM public.chats_chat AS c WHERE c.id = found.chat_id AND ({PERSON.allowed})
    )
$$""",  # noqa: S608  (no value is formatted in)
    # These two are for processes of the release before, which run on while an installation is upgraded.
    "amber_blocks_with": f"""
(queries tsquery[], chat uuid) RETURNS TABLE (number integer, id uuid) ROWS 100 AS $$
    SELECT asked.number::integer, found.id FROM {_ASKED} CROSS JOIN LATERAL (
        SELECT b.id, b.organization_id, b.chat_id FROM public.chats_messageblock AS b
        WHERE b.search @@ asked.query OFFSET 0
    ) AS found
    WHERE {ORGANIZATION.floor} AND found.chat_id = chat AND EXISTS (
        SELECT FROM public.chats_chat AS c WHERE c.id = chat AND ({PERSON.allowed})
    )
$$""",  # noqa: S608  (no value is formatted in)
    "amber_messages_with": f"""
(query tsquery) RETURNS TABLE (id uuid) ROWS 100 AS $$
    SELECT found.id FROM (
        SELECT m.id, m.organization_id, m.chat_id FROM public.chats_chatmessage AS m
        WHERE m.search @@ query OFFSET 0
    ) AS found
    WHERE {ORGANIZATION.floor} AND EXISTS (
        SELECT FROM public.chats_chat AS c WHERE c.id = found.chat_id AND ({PERSON.allowed})
    )
$$""",  # noqa: S608  (no value is formatted in)
}
"""By name: parameters, result and body."""


_GRANTED: Final = """
() RETURNS TABLE (id uuid) ROWS 100 AS $$
DECLARE
    place CONSTANT uuid := current_setting('amber.organization', true);
    person uuid;
BEGIN
    person := substring(current_setting('amber.user', true) FROM '^[0-9a-f-]{{36}}');
    IF person IS NULL THEN
        RETURN;  -- a guest of nobody's key
    END IF;
    RETURN QUERY SELECT g.{column} FROM public.{table} AS g
    WHERE g.organization_id = place AND (
        g.group_id IN (SELECT m.group_id FROM public.accounts_groupmember AS m WHERE m.user_id = person)
        OR EXISTS (
            SELECT FROM public.accounts_membership AS m
            WHERE m.organization_id = place AND m.user_id = person AND m.role IN ('owner', 'admin')
        )
    );
END
$$"""
GRANTED: Final = {
    "amber_granted_assistants": _GRANTED.format(
        table="assistants_assistantgrant", column="assistant_id"
    ),
    "amber_granted_libraries": _GRANTED.format(table="libraries_librarygrant", column="library_id"),
    "amber_granted_tools": _GRANTED.format(table="tools_toolgrant", column="tool_id"),
}
"""Functions that return the rows granted to a group of whoever asks, and to any group for an admin.
In plpgsql, which plans them once a connection."""


def build_functions(cursor: Any) -> None:
    """Make the functions as they are declared. Nobody may call them who is not allowed to.

    In a new database a migration comes here before others have added columns that they read.
    """
    cursor.execute("SET LOCAL check_function_bodies = off")
    for language, functions in (("sql", FUNCTIONS), ("plpgsql", GRANTED)):
        for name, declared in functions.items():
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION public.{name} {declared} LANGUAGE {language} STABLE"
                # Temporary tables, which anybody may make, would else be found ahead of all.
                " SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
            )
            parameters = declared.partition(")")[0].strip().removeprefix("(")
            kinds = ", ".join(each.split()[1] for each in parameters.split(",") if each)
            cursor.execute(f"REVOKE ALL ON FUNCTION public.{name} ({kinds}) FROM PUBLIC")
