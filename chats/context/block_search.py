"""Search the sealed blocks of a chat's active path for what a question asks for.

One query finds the blocks that have the question's words, those with the rarest first, and those that are nearest in
meaning. Where in them a word stands is read from their index of words, so that no text is read.
`engine.context.ranking` ranks their messages. What of them is shown is decided by `chats.context.recall`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import orjson

from amber.lib.database.array_literals import array_literal
from amber.lib.database.round_trips import ask_ahead
from chats.messages.block_words import (
    CALLING,
    called_word,
    count_words,
    lexemes_of,
    literals_of,
    places_in,
    places_of,
    said_by,
    stored_calls,
    stored_forms,
    stored_speech,
)
from engine.context.blocks import SpokenMessage, render
from engine.context.pieces import (
    END_AT,
    FIELDS,
    START_AT,
    TOKENS_AT,
    WORDS_AT,
    MessagePiece,
    cut_run,
    store_pieces,
    whole_piece,
)
from engine.context.ranking import Conversation, FoundBlock, QuestionTerms
from engine.messages import SPEAKERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_BLOCKS: Final = 40
"""Blocks whose messages are ranked, those with the rarest words first: all of a chat of 32,000 tokens. In
longer ones they hold what is found; each costs 0.04 ms, and as much again if it is shown."""

NEAREST_BLOCKS: Final = 10
"""Blocks that are ranked because they are near in meaning."""


@dataclass(frozen=True, slots=True)
class PathSearch:
    """What is searched: blocks of a chat's active path that end before a position, and the `latest`
    messages, which are not sealed yet. `model_id` names the vector's embedding model."""

    chat_id: UUID
    before_position: int
    vector: "NDArray[np.float32] | None" = None
    model_id: UUID | None = None
    latest: Sequence[SpokenMessage] = ()


class SearchedPath(NamedTuple):
    """The blocks that a search found.

    `blocks` are for ranking, `cut` for showing; `conversation` counts words on the whole path. A block's key is its
    number among these. The latest messages are a block with the chat's id.
    """

    blocks: Sequence[FoundBlock[int]]
    conversation: Conversation
    cut: Sequence["CutBlock"]


@contextmanager
def search_ahead(asked: QuestionTerms, search: PathSearch) -> Iterator[Callable[[], SearchedPath]]:
    """Find the blocks that words and vectors lead to while the `with` block goes on: one query.

    What is yielded returns them, with the places of the question's words, once the `with` block has ended.
    """
    words = asked.all_words
    values = {
        "chat": search.chat_id,
        "before": search.before_position,
        "queries": array_literal(literals_of(asked, search.chat_id)),
        "lexemes": array_literal(lexemes_of(asked)),
    }
    if search.vector is not None and search.model_id is not None:
        values |= {"vector": str(search.vector.tolist()), "model": search.model_id}
        sql = _WORDS_AND_MEANING_SQL
    else:
        sql = _WORDS_SQL if words else ""
    query: AbstractContextManager[list[tuple[Any, ...]]] = nullcontext([])
    if sql:
        query = ask_ahead(sql, values)
    with query as rows:
        yield lambda: _searched_path([*map(_BlockRow._make, rows)], asked, search)


def search_path(asked: QuestionTerms, search: PathSearch) -> SearchedPath:
    """Find the blocks that words and vectors lead to, with the places of the question's words. One query."""
    with search_ahead(asked, search) as found:
        pass
    return found()


def _searched_path(
    rows: Sequence["_BlockRow"], asked: QuestionTerms, search: PathSearch
) -> SearchedPath:
    words = asked.all_words
    cut = [_cut_block(row) for row in rows]
    blocks = _found_blocks(rows, cut, asked, may_be_called=bool(search.latest))
    known = _conversation(blocks, words, *_totals(rows, words))
    if search.latest:
        pieces, latest = _cut_latest(search, asked, number=len(cut))
        cut.append(pieces)
        counts = {
            word: count + len(latest.places.get(word, ())) for word, count in known.counts.items()
        }
        known = Conversation(known.total + len(latest.lengths), counts)
        blocks.append(latest)
    return SearchedPath(blocks, known, cut)


class _BlockRow(NamedTuple):
    """A block as `_SQL` returns it.

    `search` is its index, cut to the question's words. `said` is when the block begins, in seconds since
    1970; 0 if it has pieces, which know. `total` is the number of blocks on the path, `counts` how many of
    them have each word, by the word's number from 1.
    """

    id: UUID
    first_position: int
    last_position: int
    messages: str
    pieces: str | None
    search: str | None
    tokens: int
    said: int
    similarities: Sequence[float] | None
    total: int
    counts: str


def _totals(rows: Sequence[_BlockRow], words: Sequence[str]) -> tuple[int, Mapping[str, int]]:
    """Return how many blocks there are on the path, and how many of them have each word."""
    if not rows:
        return 0, {}
    counts = orjson.loads(rows[0].counts)
    return rows[0].total, {words[int(number) - 1]: count for number, count in counts.items()}


def _cut_latest(
    search: PathSearch, asked: QuestionTerms, *, number: int
) -> tuple["CutBlock", FoundBlock[int]]:
    """Cut the latest messages as a block is, and find in it what is asked for."""
    content = render(search.latest)
    ids = ",".join(message.id for message in search.latest)
    pieces = cut_run(search.latest, count_words)
    cut = CutBlock(search.chat_id, store_pieces(pieces), f"{{{ids}}}")
    places = places_of(content, pieces, search.latest)

    def having(words: Mapping[str, Iterable[str]]) -> dict[str, Sequence[int]]:
        found = {
            word: sorted({place for form in forms for place in places.get(form, ())})
            for word, forms in words.items()
        }
        return {word: some for word, some in found.items() if some}

    return cut, FoundBlock(
        number,
        cut.lengths,
        having({word: asked.forms_of(word) for word in asked.all_words}),
        said_by=having({speaker: [said_by(speaker)] for speaker in SPEAKERS}),
        called=having({name: map(called_word, asked.forms_of(name)) for name in asked.names}),
    )


class CutBlock:
    """The pieces of the block `id`, made only as they are asked for: hundreds are ranked, a few are shown.

    `messages` are the ids of its messages, as Postgres writes an array.
    """

    def __init__(self, pk: UUID, stored: Sequence[int], messages: str) -> None:
        self.id = pk
        self._stored = stored
        self._messages = messages

    @property
    def lengths(self) -> Sequence[int]:
        """The words of each piece."""
        return self._stored[WORDS_AT::FIELDS]

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens of each piece."""
        return self._stored[TOKENS_AT::FIELDS]

    def message_id(self, number: int) -> str:
        """Return the id of one of the block's messages, which are counted from 0."""
        # Postgres writes ids without quotes: {01a2153a-…,01a2153b-…}
        begin = 1 + number * _ID_CHARS
        return self._messages[begin : begin + _ID_CHARS - 1]

    def span_of(self, place: int) -> tuple[int, int]:
        """Return where the line of the piece's message begins and ends in the block's text."""
        stored = self._stored
        first = last = place * FIELDS
        while first and stored[first - FIELDS] == stored[first]:
            first -= FIELDS
        while last + FIELDS < len(stored) and stored[last + FIELDS] == stored[last]:
            last += FIELDS
        return stored[first + START_AT], stored[last + END_AT]

    def __getitem__(self, place: int) -> MessagePiece:
        return MessagePiece._make(self._stored[place * FIELDS : (place + 1) * FIELDS])


_ID_CHARS: Final = len("01a2153a-6ff9-7274-ae12-04a28d1e450f,")


def _cut_block(row: _BlockRow) -> CutBlock:
    if row.pieces:
        return CutBlock(row.id, orjson.loads(f"[{row.pieces[1:-1]}]"), row.messages)
    from_at = datetime.fromtimestamp(row.said, UTC)
    whole = whole_piece(block_tokens=row.tokens, from_at=from_at)
    return CutBlock(row.id, store_pieces([whole]), row.messages)


def _found_blocks(
    rows: Sequence[_BlockRow], cut: Sequence[CutBlock], asked: QuestionTerms, *, may_be_called: bool
) -> list[FoundBlock[int]]:
    """Return the blocks for ranking.

    `may_be_called` says that elsewhere in the chat somebody may be called by a name of the question.
    """
    forms, calls = stored_forms(asked), stored_calls(asked)
    indexes = [row.search or "" for row in rows]
    called = [places_in(index, calls) if calls and CALLING in index else {} for index in indexes]
    speech = stored_speech() if calls and (may_be_called or any(called)) else {}
    return [
        FoundBlock(
            number,
            cut[number].lengths,
            places_in(indexes[number], forms),
            number > 0 and row.first_position == rows[number - 1].last_position + 1,
            near if (near := row.similarities) and len(near) == len(cut[number].lengths) else (),
            places_in(indexes[number], speech) if speech else {},
            called[number],
        )
        for number, row in enumerate(rows)
    ]


def _conversation(
    blocks: Sequence[FoundBlock[int]],
    words: Sequence[str],
    total: int,
    held_by: Mapping[str, int],
) -> Conversation:
    """Estimate the conversation's counts from the blocks at hand: exact if these are all."""
    scale = max(total / len(blocks), 1.0) if blocks else 1.0
    counts = {}
    for word in words:
        having = [len(block.places[word]) for block in blocks if word in block.places]
        known = held_by.get(word, 0)
        counts[word] = round(sum(having) * known / len(having)) if having else known
    return Conversation(round(sum(len(block.lengths) for block in blocks) * scale), counts)


_ON_PATH: Final = "chat_id = %(chat)s AND on_active_path AND last_position < %(before)s"

# Only the question's words leave a block's index: `setweight` marks them, `ts_filter` keeps what is marked.
# That needs positions, which a block without pieces does not have. 'D' is the weight that is not written:
# `places_in` reads bare numbers. float8, or `ln` would reckon with numerics.
_SQL: Final = """
WITH hits AS MATERIALIZED (
    SELECT * FROM amber_blocks_before(%(queries)s::tsquery[], %(chat)s, %(before)s)
), counts AS (
    SELECT number, count(*) AS rows,
        ln(1 + (max(blocks) - count(*) + 0.5::float8) / (count(*) + 0.5::float8)) AS weight
    FROM hits GROUP BY number
), held AS (
    SELECT id, sum(weight) AS weight FROM hits JOIN counts USING (number) GROUP BY id
), best AS (
    SELECT id FROM held ORDER BY weight DESC, id LIMIT {most}
), chosen AS (
    SELECT id FROM best {nearest}
)
SELECT b.id, b.first_position, b.last_position, b.messages::text, b.pieces::text,
    CASE WHEN b.pieces IS NULL THEN b.search ELSE setweight(
        ts_filter(setweight(b.search, 'A', %(lexemes)s::text[]), '{{a}}'), 'D'
    ) END::text,
    b.tokens, CASE WHEN b.pieces IS NULL THEN floor(extract(epoch FROM b.from_at))::bigint ELSE 0 END,
    {similarities}, {total},
    (SELECT coalesce(jsonb_object_agg(number, rows), '{{}}')::text FROM counts)
FROM chosen JOIN chats_messageblock AS b USING (id) ORDER BY b.first_position
"""

_NEAREST_SQL: Final = f"""UNION (
        SELECT id FROM chats_messageblock
        WHERE {_ON_PATH} AND embedding_model_id = %(model)s AND piece_vectors IS NOT NULL
        ORDER BY vector <=> %(vector)s::halfvec LIMIT {NEAREST_BLOCKS}
    )"""  # noqa: S608  (no value is formatted in)

_SIMILARITIES_SQL: Final = """CASE WHEN b.embedding_model_id = %(model)s THEN ARRAY(
        SELECT 1 - (piece <=> %(vector)s::halfvec)
        FROM unnest(b.piece_vectors) WITH ORDINALITY AS p (piece, number) ORDER BY number
    ) END"""

_TOTAL: Final = "(SELECT max(blocks) FROM hits)"
_TOTAL_ANYWAY: Final = (
    f"coalesce({_TOTAL}, (SELECT count(*) FROM chats_messageblock WHERE {_ON_PATH}))"  # noqa: S608
)
"""The number of blocks even if none has any of the words. Only where vectors find blocks, too: a search
by words does not need it, and with it a plan for each chat would look cheaper than the one that is kept."""

_WORDS_SQL: Final = _SQL.format(most=MOST_BLOCKS, nearest="", similarities="NULL", total=_TOTAL)
_WORDS_AND_MEANING_SQL: Final = _SQL.format(
    most=MOST_BLOCKS, nearest=_NEAREST_SQL, similarities=_SIMILARITIES_SQL, total=_TOTAL_ANYWAY
)
