"""Say which statements are measured on each table, with values from a seeded generator.

They are what Amber's code asks, shortened to the columns that count. A statement about the past
asks for any month; new rows are of the last month, whose partition holds as many rows as others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final
from uuid import UUID

from amber.lib.ids import least_id_at
from bench.partitions.tables import (
    ASSISTANT,
    CHAT,
    CHATS_AT_ONCE,
    DIMENSIONS,
    LIBRARY,
    MESSAGES_OF_CHAT,
    MODEL,
    ORGANIZATION,
    ORGANIZATIONS,
    PERSON,
    STARTS,
    row_id,
)

SINCE: Final = STARTS[-2]
LOW: Final = least_id_at(SINCE - timedelta(hours=1))
_SEGMENT: Final = CHATS_AT_ONCE * MESSAGES_OF_CHAT


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    sql: str
    values: Callable[[], Sequence[Any]]
    times: int = 100
    settings: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """Knows the rows of a table with `count` rows, and makes new ones."""

    count: int
    random: Random

    def message(self, number: int) -> UUID:
        start, end = (int(each.timestamp() * 1_000) for each in (STARTS[0], STARTS[-1]))
        at_ms = start + round(number * (end - start) / self.count)
        return UUID(f"{at_ms:012x}70008{number:015x}")

    def leaf(self) -> tuple[UUID, UUID]:
        """Return the last message of some chat, and the chat."""
        segment = self.random.randrange(max(1, self.count // _SEGMENT))
        place = self.random.randrange(CHATS_AT_ONCE)
        number = segment * _SEGMENT + (MESSAGES_OF_CHAT - 1) * CHATS_AT_ONCE + place
        return self.message(number), row_id(CHAT, segment * CHATS_AT_ONCE + place)

    def organization(self) -> UUID:
        return row_id(ORGANIZATION, self.random.randrange(ORGANIZATIONS))

    def new_id(self) -> UUID:
        """Return an id of the last month."""
        low, high = (least_id_at(each).int >> 80 for each in STARTS[-2:])
        at_ms = self.random.randrange(low, high)
        return UUID(f"{at_ms:012x}7abc9{self.random.getrandbits(60):015x}")


def usage_statements(world: World) -> Iterator[Statement]:
    sums = "sum(prompt_tokens), sum(completion_tokens), sum(cost), count(*)"
    of_one = f"SELECT model, {sums} FROM providers_usagerecord WHERE organization_id = %s AND created_at >= %s"  # noqa: S608
    of_all = f"SELECT organization_id, {sums} FROM providers_usagerecord WHERE created_at >= %s"  # noqa: S608
    by_model, by_organization = " GROUP BY model", " GROUP BY organization_id"
    ids = " AND id >= %s"
    yield Statement(
        "30 days of an organization, by time",
        of_one + by_model,
        lambda: [world.organization(), SINCE],
    )
    yield Statement(
        "30 days of an organization, by time and id",
        of_one + ids + by_model,
        lambda: [world.organization(), SINCE, LOW],
    )
    yield Statement("30 days of all, by time", of_all + by_organization, lambda: [SINCE], 3)
    yield Statement(
        "30 days of all, by time and id", of_all + ids + by_organization, lambda: [SINCE, LOW], 3
    )
    yield Statement(
        "calls of a turn",
        "SELECT * FROM providers_usagerecord WHERE turn_id = %s",
        lambda: [world.new_id()],
    )
    yield Statement(
        "newest 100", "SELECT * FROM providers_usagerecord ORDER BY id DESC LIMIT 100", list
    )
    yield Statement("a new call", _NEW_CALL, lambda: _new_call(world), 3_000)


def message_statements(world: World) -> Iterator[Statement]:
    yield Statement("path of 50 messages", _PATH, world.leaf)
    yield Statement(
        "50 messages of a chat by position",
        "SELECT id, content FROM chats_chatmessage WHERE chat_id = %s ORDER BY position DESC LIMIT 50",
        lambda: world.leaf()[1:],
    )
    yield Statement(
        "messages of a turn",
        "SELECT id, content FROM chats_chatmessage WHERE turn_id = %s",
        lambda: [world.new_id()],
    )
    yield Statement(
        "children of a message",
        "SELECT id FROM chats_chatmessage WHERE parent_id = %s",
        lambda: world.leaf()[:1],
    )
    yield Statement(
        "search of a rare word", _SEARCH, lambda: [f"'w{_rare(world)}'", world.organization()]
    )
    yield Statement(
        "search of two words",
        _SEARCH,
        lambda: [
            f"'w{world.random.randrange(1_000, 5_000)}' & 'w{world.random.randrange(50)}'",
            world.organization(),
        ],
        30,
    )
    yield Statement("a new message", _NEW_MESSAGE, lambda: _new_message(world), 3_000)
    yield Statement(
        "100 messages of a chat deleted",
        "DELETE FROM chats_chatmessage WHERE chat_id = %s",
        lambda: world.leaf()[1:],
        30,
        "SET session_replication_role = origin",
    )


def chunk_statements(world: World) -> Iterator[Statement]:
    """Yield searches in libraries of 2,000 chunks, and of a fifth of all: by index, and exactly."""
    for size, library in (("a small library", 9), ("a large library", 0)):
        for way, cast in (("by index", f"::halfvec({DIMENSIONS})"), ("exactly", "")):
            for known, condition in (("", ""), (", tenant given", "organization_id = %s AND ")):
                yield Statement(
                    f"{size}, {way}{known}",
                    f"SELECT id FROM libraries_documentchunk WHERE {condition}library_id = ANY(%s)"  # noqa: S608
                    f" ORDER BY vector{cast} <=> %s::halfvec LIMIT 100",
                    lambda library=library, known=known: _asked(world, library, known),  # type: ignore[misc]
                    10,
                    _SEARCH_SETTINGS + f"SET enable_sort = {'off' if cast else 'on'}",
                )
    yield Statement("a new chunk", _NEW_CHUNK, lambda: _new_chunk(world), 300)


STATEMENTS: Final[dict[str, Callable[[World], Iterator[Statement]]]] = {
    "usage": usage_statements,
    "messages": message_statements,
    "chunks": chunk_statements,
}


def _rare(world: World) -> int:
    return world.random.randrange(10_000, 500_000)


def _vector(world: World) -> str:
    return str([round(world.random.gauss(0, 1), 4) for _ in range(DIMENSIONS)])


def _asked(world: World, library: int, known: str) -> list[Any]:
    tenant = [row_id(ORGANIZATION, library)] if known else []
    return [*tenant, [row_id(LIBRARY, library)], _vector(world)]


def _new_call(world: World) -> list[Any]:
    number = world.random.randrange(ORGANIZATIONS)
    person = number + ORGANIZATIONS * world.random.randrange(10)
    return [
        world.new_id(),
        SINCE,
        row_id(ORGANIZATION, number),
        row_id(PERSON, person),
        row_id(ASSISTANT, number),
        world.new_id(),
    ]


def _new_message(world: World) -> list[Any]:
    parent, chat = world.leaf()
    words = (world.random.randrange(5_000), world.random.randrange(500_000))
    return [world.new_id(), SINCE, world.organization(), chat, parent, world.new_id(), *words]


def _new_chunk(world: World) -> list[Any]:
    return [
        world.new_id(),
        world.organization(),
        world.new_id(),
        world.new_id(),
        row_id(MODEL, 1),
        _vector(world),
    ]


_NEW_CALL: Final = """
INSERT INTO providers_usagerecord (id, created_at, updated_at, organization_id, user_id, assistant_id,
    turn_id, kind, model, prompt_tokens, completion_tokens, cached_tokens, estimated, cost,
    first_token_ms, latency_ms, outcome)
VALUES (%s, %s, now(), %s, %s, %s, %s, 'chat', 'gpt-large', 5000, 300, 0, false, 0.01, 300, 4000, 'ok')
"""

_PATH: Final = """
WITH RECURSIVE path AS (
    SELECT id, parent_id, position, content, 1 AS depth FROM chats_chatmessage
    WHERE id = %s AND chat_id = %s
  UNION ALL
    SELECT m.id, m.parent_id, m.position, m.content, path.depth + 1
    FROM path JOIN chats_chatmessage m ON m.id = path.parent_id WHERE path.depth < 50
)
SELECT * FROM path ORDER BY depth DESC
"""

_SEARCH: Final = """
SELECT id FROM (
    SELECT m.id, m.organization_id FROM chats_chatmessage AS m WHERE m.search @@ %s::tsquery OFFSET 0
) AS found WHERE organization_id = %s
"""

_NEW_MESSAGE: Final = """
INSERT INTO chats_chatmessage (id, created_at, updated_at, organization_id, chat_id, parent_id,
    position, role, content, hidden, citations, turn_id, step, prompt_tokens, completion_tokens,
    total_tokens, search)
VALUES (%s, %s, now(), %s, %s, %s, 100, 'user', 'What somebody said, number 7', false, '[]', %s, 0, 1, 1,
    1, array_to_tsvector(ARRAY['w1', 'w' || %s::int, 'w' || %s::int]))
"""

_SEARCH_SETTINGS: Final = (
    "SET hnsw.iterative_scan = 'relaxed_order'; SET hnsw.ef_search = 100;"
    "SET hnsw.max_scan_tuples = 40000; SET hnsw.scan_mem_multiplier = 4;"
    "SET plan_cache_mode = force_custom_plan;"
)

_NEW_CHUNK: Final = """
INSERT INTO libraries_documentchunk (id, created_at, updated_at, organization_id, document_id,
    library_id, embedding_model_id, content, "order", start, "end", tokens, vectorized, vector)
VALUES (%s, now(), now(), %s, %s, %s, %s, 'A chunk.', 0, 0, 8, 2, true, %s::halfvec)
"""
