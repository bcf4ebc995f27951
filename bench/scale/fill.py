"""Fill an installation: `python -m bench.scale.fill NAME [CHUNKS]`, with its owner's environment.

Times lie in the year that ends now, messages and turns in the order of time, as people write them: the
rows of a chat are scattered among those of others. No turn has a manifest, which is some 2 KB more each.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import django
import psycopg

from bench.loadgen import say
from bench.scale.fill_chunks import ChunkFiller
from bench.scale.rows import copy_in, insert, without_indexes
from bench.scale.server import FOLDER
from bench.scale.world import SIZES, World, row_id

BIG: Final = (
    *("chats_chatmessage", "chats_turn", "chats_chat", "chats_messageblock", "chats_feedback"),
    *("providers_usagerecord", "memory_memory", "tools_toolcallrecord", "accounts_auditevent"),
    *("libraries_documentchunk", "libraries_document"),
)


def main() -> None:
    django.setup()
    from django.conf import settings

    owner = settings.AMBER_DATABASES["owner"]
    with psycopg.connect(
        dbname=owner["NAME"], user=owner["USER"], host=owner["HOST"], autocommit=True
    ) as connection:
        connection.execute("SET session_replication_role = replica; SET work_mem = '1GB'")
        size = SIZES[sys.argv[1]]
        if chunks := sys.argv[2:]:
            size = replace(size, chunks=int(chunks[0]))
        _Filler(connection, World(size)).fill()


class _Filler:
    def __init__(self, connection: psycopg.Connection[Any], world: World) -> None:
        from bench.scale.samples import read_samples

        self.connection, self.world = connection, world
        self.samples = read_samples(FOLDER / "samples.pickle")

    def fill(self) -> None:
        self._timed("plan", self._plan)
        self._timed("organizations and people", self._accounts)
        for table in BIG:
            self.connection.execute(
                f"ALTER TABLE {table} SET (autovacuum_enabled = false)".encode()
            )
        with without_indexes(self.connection, BIG):
            for what in ("chats", "messages", "turns", "ledger", "blocks", "memories", "logs"):
                self._timed(what, getattr(self, f"_{what}"))
            self._timed("documents and chunks", self._chunks)
            self.indexed_at = time.monotonic()
        say(f"  indexes, vacuum: {time.monotonic() - self.indexed_at:.0f} s")
        self._timed("index of vectors", self._vector_index)
        self.connection.execute("DROP SCHEMA scale CASCADE")
        self.connection.execute("ANALYZE")

    def _timed(self, what: str, work: Any) -> None:
        began = time.monotonic()
        work()
        say(f"  {what}: {time.monotonic() - began:.0f} s")

    # -- What rows are made of -----------------------------------------------------------------

    def _plan(self) -> None:
        self.connection.execute(_PLAN_SQL)
        copy_in(self.connection, "scale.message", self.samples.messages)
        copy_in(self.connection, "scale.block", self.samples.blocks)
        copy_in(self.connection, "scale.memory", self.samples.memories)
        copy_in(self.connection, "scale.vector", self.samples.vectors)
        copy_in(self.connection, "scale.organization", self._organizations())
        copy_in(self.connection, "scale.person", self._people())
        chats = self.world.chats
        copy_in(
            self.connection,
            "scale.planned",
            enumerate_rows(zip(*(chats[name].tolist() for name in chats), strict=True)),
        )
        self.connection.execute(_CHATS_SQL)

    def _organizations(self) -> Iterator[tuple[Any, ...]]:
        for number in range(self.world.size.organizations + 1):
            yield number, row_id("organization", number), row_id("assistant", number)

    def _people(self) -> Iterator[tuple[Any, ...]]:
        from chats.messages.search import person_word
        from memory.owner import Owner

        for number, organization in enumerate(self.world.user_organization.tolist()):
            tenant, user = row_id("organization", organization), row_id("user", number)
            yield (
                *(number, user, organization),
                *(f"'{person_word(tenant, user, None)}'", f"'{Owner(tenant, user).word}'"),
            )

    # -- Rows ------------------------------------------------------------------------------------

    def _accounts(self) -> None:
        for table, columns, source in _ACCOUNT_ROWS:
            insert(self.connection, table, columns, source)

    def _chats(self) -> None:
        insert(self.connection, "chats_chat", _CHAT, "FROM scale.chat c")

    def _messages(self) -> None:
        insert(self.connection, "chats_chatmessage", _MESSAGE, _BY_TIME.format(step=1) + _SAMPLED)

    def _turns(self) -> None:
        insert(self.connection, "chats_turn", _TURN, _BY_TIME.format(step=2))

    def _ledger(self) -> None:
        insert(self.connection, "providers_usagerecord", _USAGE, _BY_TIME.format(step=2))

    def _blocks(self) -> None:
        insert(self.connection, "chats_messageblock", _BLOCK, _BLOCKS_SOURCE)

    def _memories(self) -> None:
        insert(self.connection, "memory_memory", _MEMORY, _MEMORIES_SOURCE)

    def _logs(self) -> None:
        for table, columns, step in _LOGS:
            insert(self.connection, table, columns, _BY_TIME.format(step=step))

    def _chunks(self) -> None:
        writer = ChunkFiller(self.connection, self.samples.chunks)
        for number, (organization, count) in enumerate(self.world.libraries):
            writer.write(number, organization, count)

    def _vector_index(self) -> None:
        """Build it as the periodic job does, with the memory that an operator would give it."""
        from libraries.embedding import vector_index
        from libraries.retrieval.survey import survey_libraries

        vector_index.BUILD_MEMORY = "3GB"  # type: ignore[misc]
        vector_index.tend_indexes()
        for _ in range(len(self.world.libraries) // 50 + 1):
            survey_libraries()


def enumerate_rows(rows: Any) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(rows):
        yield number, *row


_PLAN_SQL: Final = """
CREATE SCHEMA scale;
CREATE TABLE scale.message (n int PRIMARY KEY, content text, search tsvector);
CREATE TABLE scale.block (n int PRIMARY KEY, content text, pieces bigint[], search tsvector, tokens int);
CREATE TABLE scale.memory (n int PRIMARY KEY, content text, search tsvector);
CREATE TABLE scale.vector (n int PRIMARY KEY, vector halfvec);
CREATE TABLE scale.organization (n int PRIMARY KEY, id uuid, assistant_id uuid);
CREATE TABLE scale.person (n int PRIMARY KEY, id uuid, organization int, word tsvector, memory_word tsvector);
CREATE TABLE scale.planned (n int PRIMARY KEY, person int, length int, start_ms bigint, gap_ms bigint);
CREATE FUNCTION scale.id(ms bigint, kind text, n int, p int) RETURNS uuid IMMUTABLE LANGUAGE sql AS
$$ SELECT (lpad(to_hex(ms), 12, '0') || kind || lpad(to_hex(n), 6, '0') || lpad(to_hex(p), 6, '0'))::uuid $$;
CREATE FUNCTION scale.moment(ms bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS
$$ SELECT to_timestamp(ms / 1000.0) $$;
"""
CHAT_ID, MESSAGE_ID, TURN_ID, OTHER_ID, BLOCK_ID = (f"'70{n:02x}8000'" for n in (1, 2, 3, 4, 5))
_CHATS_SQL: Final = f"""
CREATE TABLE scale.chat AS SELECT
    c.n, c.length, c.start_ms, c.gap_ms, u.id AS user_id, u.word, o.id AS organization_id, o.assistant_id,
    scale.id(c.start_ms, {CHAT_ID}, c.n, 0) AS id
FROM scale.planned c JOIN scale.person u ON u.n = c.person JOIN scale.organization o
    ON o.n = u.organization;
ANALYZE
"""  # noqa: S608  (constants)

_OF: Final = {"organization_id": "o.id", "created_at": "now() - interval '1 year'"}
_ACCOUNT_ROWS: Final = (
    (
        "accounts_organization",
        {
            "id": "o.id",
            "name": "'Organization ' || n",
            "slug": "'scale-' || n",
            "created_at": _OF["created_at"],
        },
        "FROM scale.organization o",
    ),
    (
        "accounts_user",
        {
            "id": "u.id",
            "email": "'person-' || u.n || '@scale.example'",
            "name": "'Person ' || u.n",
            "is_active": "true",
            "time_zone": "'UTC'",
            "password": "'!'",
        },
        "FROM scale.person u",
    ),
    (
        "accounts_membership",
        {
            **_OF,
            "id": "gen_random_uuid()",
            "user_id": "u.id",
            "role": "CASE WHEN u.n = (SELECT min(n) FROM scale.person WHERE organization = o.n)"
            " THEN 'owner' ELSE 'member' END",
        },
        "FROM scale.person u JOIN scale.organization o ON o.n = u.organization",
    ),
    (
        "accounts_auditchain",
        {"organization_id": "o.id", "number": "1000000000"},
        "FROM scale.organization o",
    ),
    (
        "assistants_assistant",
        {
            **_OF,
            "id": "o.assistant_id",
            "name": "'Helper'",
            "slug": "'helper'",
            "model": "'auto'",
            "shared": "true",
            "prompt": "'You are a friendly assistant.'",
            "untrusted_calls": "'ask'",
        },
        "FROM scale.organization o",
    ),
    (
        "tools_tool",
        {**_OF, "id": "o.id", "name": "'Stock'", "kind": "'discovery'", "warnings": "'[]'"},
        "FROM scale.organization o",
    ),
)
_LAST: Final = "c.start_ms + (c.length - 1) * c.gap_ms"
_CHAT: Final = {
    "id": "c.id",
    "organization_id": "c.organization_id",
    "user_id": "c.user_id",
    "owner": "'user'",
    "name": "'Chat number ' || c.n",
    "assistant_id": "c.assistant_id",
    "active_leaf_id": f"scale.id({_LAST}, {MESSAGE_ID}, c.n, c.length - 1)",
    "created_at": "scale.moment(c.start_ms)",
    "updated_at": f"scale.moment({_LAST})",
}
_BY_TIME: Final = """
FROM (
    SELECT c.n, p, c.start_ms + p * c.gap_ms AS ms
    FROM scale.chat c CROSS JOIN LATERAL generate_series(0, c.length - 1, {step}) p ORDER BY ms
) m JOIN scale.chat c ON c.n = m.n
"""
_SAMPLED: Final = " JOIN scale.message s ON s.n = (hashint4(m.n * 20011 + m.p) & 2147483647) % 10000 * 2 + m.p % 2"
_OF_CHAT: Final = {
    "organization_id": "c.organization_id",
    "created_at": "scale.moment(ms)",
    "updated_at": "scale.moment(ms)",
}
_MESSAGE: Final = {
    **_OF_CHAT,
    "id": f"scale.id(ms, {MESSAGE_ID}, m.n, p)",
    "chat_id": "c.id",
    "parent_id": f"CASE WHEN p > 0 THEN scale.id(ms - c.gap_ms, {MESSAGE_ID}, m.n, p - 1) END",
    "position": "p",
    "role": "CASE p % 2 WHEN 0 THEN 'human' ELSE 'assistant' END",
    "content": "s.content",
    "assistant_id": "CASE p % 2 WHEN 1 THEN c.assistant_id END",
    "citations": "'[]'",
    "turn_id": f"scale.id(ms - p % 2 * c.gap_ms, {TURN_ID}, m.n, p - p % 2)",
    "step": "p % 2",
    "prompt_tokens": "p % 2 * 900",
    "completion_tokens": "p % 2 * 40",
    "total_tokens": "p % 2 * 940",
    "search": "s.search || c.word",
    "words_version": "1",
}
_ENDED: Final = "scale.moment(ms + 4000)"
_TURN: Final = {
    **_OF_CHAT,
    "id": f"scale.id(ms, {TURN_ID}, m.n, p)",
    "chat_id": "c.id",
    "user_id": "c.user_id",
    "assistant_id": "c.assistant_id",
    "question_id": f"scale.id(ms, {MESSAGE_ID}, m.n, p)",
    "tip_id": f"scale.id(ms + c.gap_ms, {MESSAGE_ID}, m.n, p + 1)",
    "status": "CASE (m.n + p) % 100 WHEN 0 THEN 'failed' ELSE 'completed' END",
    "seq": "40",
    "step": "1",
    "usage": """'{"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}'""",
    "finish_reason": "'stop'",
    "waiting_calls": "'[]'",
    "worker": "'chat@scale.1'",
    "attempt": "1",
    "fence": "1",
    "started_at": "scale.moment(ms + 20)",
    "first_token_at": "scale.moment(ms + 500)",
    "ended_at": _ENDED,
}
_USAGE: Final = {
    **_OF_CHAT,
    "id": f"scale.id(ms + 4000, {OTHER_ID}, m.n, p)",
    "created_at": _ENDED,
    "user_id": "c.user_id",
    "assistant_id": "c.assistant_id",
    "turn_id": f"scale.id(ms, {TURN_ID}, m.n, p)",
    "kind": "'chat'",
    "model": "'muse-1'",
    "prompt_tokens": "900",
    "completion_tokens": "40",
    "cost": "0.00265",
    "first_token_ms": "480",
    "latency_ms": "3900",
    "outcome": "CASE (m.n + p) % 100 WHEN 0 THEN 'timeout' ELSE 'ok' END",
}
_BLOCKS_SOURCE: Final = """
FROM scale.chat c CROSS JOIN LATERAL generate_series(0, (c.length - 140) / 20 - 1) b
JOIN scale.block s ON s.n = (c.n * 31 + b * 7) % 500 JOIN scale.vector v ON v.n = (c.n + b) % 2000
"""
_AT: Final = "scale.id(c.start_ms + {p} * c.gap_ms, {kind}, c.n, {p})"


def _at(place: str, kind: str) -> str:
    return _AT.format(p=f"({place})", kind=kind)


_BLOCK: Final = {
    "id": _at("b * 20", BLOCK_ID),
    "organization_id": "c.organization_id",
    "chat_id": "c.id",
    "previous_id": f"CASE WHEN b > 0 THEN {_at('b * 20 - 20', BLOCK_ID)} END",
    "hash": "md5(c.n || ' ' || b)",
    "full_content": "s.content",
    "messages": "ARRAY(SELECT {} FROM generate_series(0, 19) i)".format(  # noqa: S608  (constants)
        _at("b * 20 + i", MESSAGE_ID)
    ),
    "first_message_id": _at("b * 20", MESSAGE_ID),
    "last_message_id": _at("b * 20 + 19", MESSAGE_ID),
    "first_position": "b * 20",
    "last_position": "b * 20 + 19",
    "from_at": "scale.moment(c.start_ms + b * 20 * c.gap_ms)",
    "until_at": "scale.moment(c.start_ms + (b * 20 + 19) * c.gap_ms)",
    "tokens": "s.tokens",
    "tokens_before": "b * s.tokens",
    "on_active_path": "true",
    "vector": "v.vector",
    "embedding_model_id": '(SELECT id FROM providers_embeddingmodel WHERE "default")',
    "search": "s.search || quote_literal('chat::' || c.id)::tsvector",
    "pieces": "s.pieces",
    "index_version": "2",
}
_MEMORIES_SOURCE: Final = """
FROM scale.person u JOIN scale.organization o ON o.n = u.organization
CROSS JOIN generate_series(0, 9) i JOIN scale.memory s ON s.n = (u.n * 10 + i) % 1000
JOIN scale.vector v ON v.n = s.n
"""
_MEMORY: Final = {
    **_OF,
    "id": "gen_random_uuid()",
    "user_id": "u.id",
    "content": "s.content",
    "content_md5": "md5(s.content)",
    "vector": "v.vector",
    "embedding_model_id": _BLOCK["embedding_model_id"],
    "search": "s.search || u.memory_word",
    "words_version": "1",
    "confidence": "1",
}
_LOGS: Final = (
    (
        "tools_toolcallrecord",
        {
            **_OF_CHAT,
            "id": f"scale.id(ms + 1000, {OTHER_ID}, m.n, p)",
            "tool_id": "c.organization_id",
            "user_id": "c.user_id",
            "turn_id": f"scale.id(ms, {TURN_ID}, m.n, p)",
            "function": "'find_part'",
            "outcome": "CASE WHEN (m.n + p) % 50 = 0 THEN 'failed' ELSE 'ok' END",
            "latency_ms": "120",
        },
        20,
    ),
    (
        "chats_feedback",
        {
            **_OF_CHAT,
            "id": f"scale.id(ms + 9000, {OTHER_ID}, m.n, p)",
            "chat_id": "c.id",
            "message_id": f"scale.id(ms + c.gap_ms, {MESSAGE_ID}, m.n, p + 1)",
            "user_id": "c.user_id",
            "assistant_id": "c.assistant_id",
            "value": "CASE (m.n + p) % 3 WHEN 0 THEN 'down' ELSE 'up' END",
        },
        100,
    ),
    (
        "accounts_auditevent",
        {
            "id": f"scale.id(ms, {OTHER_ID}, m.n, p)",
            "created_at": "scale.moment(ms)",
            "organization_id": "c.organization_id",
            "number": "row_number() OVER (PARTITION BY c.organization_id ORDER BY ms)",
            "action": "'assistant.shared'",
            "actor_kind": "'user'",
            "actor_user_id": "c.user_id",
            "target_kind": "'assistant'",
            "target_id": "c.assistant_id",
            "hash": "repeat('0', 64)",
        },
        50,
    ),
)


if __name__ == "__main__":
    main()
