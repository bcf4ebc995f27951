"""Find what was said earlier in a conversation that matters to a question: single messages.

It looks into the sealed blocks of the active path, before the tail, in two queries: one finds blocks
(`chats.context.block_search`), the other reads what of their messages is shown (two if that are not only words of
people). `engine.context.ranking` decides which messages matter. Nothing of another chat is ever found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.utils import timezone

from accounts.tenant_rows import NOBODY
from amber.lib.database.array_literals import array_literal, plain_array_literal
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace
from chats.context.block_search import CutBlock, PathSearch, SearchedPath, search_ahead, search_path
from chats.messages.block_words import terms_of
from chats.models import MessageBlock
from engine.context.blocks import said_line
from engine.context.pieces import WHOLE_CHARS, MessagePiece, read_pieces, show, whole_piece
from engine.context.ranking import QuestionTerms, is_related, rank_pieces, worth_showing
from engine.context.recall import choose
from engine.messages import ROLES
from providers import reranker

UNTRUSTED_ROLES: Final = array_literal(role for role, facts in ROLES.items() if facts.is_untrusted)

MOST_LEFT_OUT: Final = 20
"""How many blocks at most the manifest names as relevant but left out."""


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    """What is shown of a block: its `pieces` by their places, with texts, messages and relevance (0 to 1).

    `is_untrusted` says that a stranger wrote one of the messages (a file, a tool's result).
    """

    id: UUID
    pieces: Mapping[int, MessagePiece]
    texts: Mapping[int, str]
    message_ids: Sequence[UUID]
    relevance: float
    is_untrusted: bool = False

    @property
    def content(self) -> str:
        return self.text_in(UTC)

    @property
    def said_between(self) -> tuple[int, int]:
        """When the first and the last of it was said, in seconds since 1970."""
        said = [piece.said for piece in self.pieces.values()]
        return min(said), max(said)

    @property
    def from_at(self) -> datetime:
        return datetime.fromtimestamp(self.said_between[0], UTC)

    @property
    def until_at(self) -> datetime:
        return datetime.fromtimestamp(self.said_between[1], UTC)

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces.values())

    def text_in(self, zone: tzinfo) -> str:
        """Return the text as the model reads it, times in this zone."""
        return show(zip(self.pieces.values(), self.texts.values(), strict=True), zone)


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found; the match begins `offset` characters into its line."""

    id: UUID
    offset: int


@dataclass(frozen=True, slots=True)
class RecallResult:
    """`taken` in the order they were said; `left_out` are relevant blocks that did not fit.

    `is_unrelated`: something shares words with the question, but too little to matter.
    """

    taken: Sequence[RecalledBlock] = ()
    left_out: Sequence[UUID] = ()
    is_unrelated: bool = False


@dataclass(frozen=True, slots=True)
class PendingRecall:
    """A search for what was said earlier. `found` returns its blocks once they are there."""

    question: str
    asked: QuestionTerms
    found: Callable[[], SearchedPath]


@contextmanager
def recall_ahead(
    search: PathSearch, question: str, *, today: date | None = None
) -> Iterator[PendingRecall]:
    """Search for what matters to the question while the `with` block runs: one query, by words only.

    "Last week" is counted from `today`. The value yielded knows what was found once the block has ended.
    """
    asked = terms_of(question, today or timezone.now().date())
    with search_ahead(asked, search) as found:
        yield PendingRecall(question, asked, found)


def recall(
    search: PathSearch, question: str, *, limit_tokens: int, today: date | None = None
) -> RecallResult:
    """Return the messages of blocks that matter to the question, as `recall_ahead` finds them."""
    with recall_ahead(search, question, today=today) as pending:
        pass
    return choose_recalled(pending, limit_tokens=limit_tokens)


@trace(names.RECALL)
def choose_recalled(pending: PendingRecall, *, limit_tokens: int) -> RecallResult:
    """Return which of the found messages matter to the question, within the budget: up to three queries."""
    blocks, conversation, cut = pending.found()
    ranking = rank_pieces(blocks, pending.asked, conversation, is_gated=True)
    if not is_related(ranking.evidence):
        is_near = ranking.evidence.margin > 0
        return RecallResult(is_unrelated=is_near or any(block.places for block in blocks))
    worth = _rerank(pending.question, worth_showing(ranking), cut)
    tokens = [block.tokens for block in cut]
    costs = {(number, place): tokens[number][place] for number, place in worth}
    taken, left_out = choose(worth, costs, limit_tokens=limit_tokens)
    chosen: dict[int, list[int]] = {}
    for number, place in taken:
        chosen.setdefault(number, []).append(place)
    relevances = {
        number: ranking.evidence.coverage * max(worth[number, place] for place in places)
        for number, places in chosen.items()
    }
    shown = {
        number: {place: cut[number][place] for place in sorted(places)}
        for number, places in chosen.items()
    }
    others = dict.fromkeys(cut[number].id for number, _ in left_out if number not in chosen)
    return RecallResult(
        taken=[
            RecalledBlock(
                cut[number].id,
                shown[number],
                found.texts,
                found.message_ids,
                relevances[number],
                found.is_untrusted,
            )
            for number, found in _read_shown(shown, cut).items()
        ],
        left_out=list(others)[:MOST_LEFT_OUT],
    )


class _ShownTexts(NamedTuple):
    """The texts of a block's pieces by their places, and the messages that they are of."""

    texts: Mapping[int, str]
    message_ids: Sequence[UUID]
    is_untrusted: bool = False


_Shown = Mapping[int, Mapping[int, MessagePiece]]
"""The pieces that are shown: by the number of their block, and by their place in it."""


def _read_shown(shown: _Shown, cut: Sequence[CutBlock]) -> dict[int, _ShownTexts]:
    """Return what is shown of blocks, in order, without blocks that were deleted meanwhile.

    One query reads messages; a second one reads the blocks that messages alone do not make up.
    """
    said = _read_said(shown, cut)
    rest = {number: pieces for number, pieces in shown.items() if number not in said}
    found = said | _read_blocks(rest, cut) if rest else said
    return {number: found[number] for number in sorted(found)}


def _read_said(shown: _Shown, cut: Sequence[CutBlock]) -> dict[int, _ShownTexts]:
    """Return what is shown of those blocks where the messages alone tell it.

    A block's text is ten times as long. It is not needed where each message, written as a line of the block,
    is as long as the line that was sealed.
    """
    ids = {
        (number, piece.message): cut[number].message_id(piece.message)
        for number, pieces in shown.items()
        for piece in pieces.values()
        if piece.end != WHOLE_CHARS
    }
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SAID_SQL, [plain_array_literal(ids.values())])
        said = {
            written: (pk, said_line(role, content))
            for written, pk, role, content in cursor.fetchall()
        }
    found = {}
    for number, pieces in shown.items():
        texts: dict[int, str] = {}
        message_ids: dict[UUID, None] = {}
        for place, piece in pieces.items():
            message_id, line = said.get(ids.get((number, piece.message), ""), (NOBODY, ""))
            start, end = cut[number].span_of(place)
            # Lines of files and tools always differ, since `said_line` is empty for their roles: so no
            # text that is taken from messages is untrusted.
            if len(line) != end - start:
                break
            texts[place] = line[piece.start - start : piece.end - start]
            message_ids[message_id] = None
        else:
            found[number] = _ShownTexts(texts, [*message_ids])
    return found


def _read_blocks(shown: _Shown, cut: Sequence[CutBlock]) -> dict[int, _ShownTexts]:
    """Return what is shown of the blocks, read from their own texts."""
    with connection.cursor() as cursor:
        arrays = _as_arrays([*_messages_of(shown)], cut)
        cursor.execute(_SHOWN_SQL, [*arrays, UNTRUSTED_ROLES])
        return {
            number: _ShownTexts(_texts_in(content, shown[number]), ids, is_untrusted)
            for number, content, ids, is_untrusted in cursor.fetchall()
        }


def _messages_of(shown: _Shown) -> dict[tuple[int, int], None]:
    """Return the messages that are shown, each once: the block's number, and the place in it from 1."""
    return {
        (number, 0 if piece.end == WHOLE_CHARS else piece.message + 1): None
        for number, pieces in shown.items()
        for piece in pieces.values()
    }


def _as_arrays(messages: Sequence[tuple[int, int]], cut: Sequence[CutBlock]) -> list[str]:
    """Return the numbers, blocks and places."""
    return [
        plain_array_literal(number for number, _ in messages),
        plain_array_literal(cut[number].id for number, _ in messages),
        plain_array_literal(place for _, place in messages),
    ]


def _texts_in(content: str, pieces: Mapping[int, MessagePiece]) -> dict[int, str]:
    return {place: content[piece.start : piece.end] for place, piece in pieces.items()}


def _rerank(
    question: str, worth: dict[tuple[int, int], float], cut: Sequence[CutBlock]
) -> dict[tuple[int, int], float]:
    """Return the messages in the order of the operator's reranker, if turns may ask it: then one query."""
    if not reranker.may_serve_turns():
        return worth
    first = list(worth)[: reranker.SHOWN]
    ids = {cut[number].id for number, _ in first}
    rows = MessageBlock.objects.only("pk", "full_content").in_bulk(ids)
    texts = {}
    for number, place in first:
        if row := rows.get(cut[number].id):
            piece = cut[number][place]
            texts[number, place] = row.full_content[piece.start : piece.end]
    return {key: worth[key] for key in [*reranker.order_for_turn(question, texts), *worth]}


def find_messages(search: PathSearch, query: str, *, today: date, limit: int) -> list[FoundMessage]:
    """Return the messages that fit a query best, best first: not one that has none of its words, unless it
    is near in meaning. One query."""
    asked = terms_of(query, today)
    blocks, conversation, cut = search_path(asked, search)
    found: dict[UUID, FoundMessage] = {}
    for number, place in rank_pieces(blocks, asked, conversation).scores:
        piece = cut[number][place]
        begins, _ = cut[number].span_of(place)
        message_id = UUID(cut[number].message_id(piece.message))
        found.setdefault(message_id, FoundMessage(message_id, piece.start - begins))
        if len(found) == limit:
            break
    return list(found.values())


def rebuild_recalled(row: MessageBlock, places: Sequence[int] | None) -> RecalledBlock:
    """Return what was shown of a block in an earlier request; without places all of it."""
    known = _pieces_of(row)
    shown = range(len(known)) if places is None else places
    pieces = {place: known[place] for place in shown if place < len(known)}
    messages = dict.fromkeys(row.messages[piece.message] for piece in pieces.values())
    told = list(messages) if row.pieces else row.messages
    return RecalledBlock(row.pk, pieces, _texts_in(row.full_content, pieces), told, 1.0)


def _pieces_of(row: MessageBlock) -> list[MessagePiece]:
    if row.pieces:
        return read_pieces(row.pieces)
    whole = whole_piece(block_tokens=row.tokens, from_at=row.from_at)
    return [whole]


_SAID_SQL: Final = """
SELECT id::text, id, role, content FROM chats_chatmessage WHERE id = ANY(%s::uuid[])
"""

# A block without pieces is shown whole, as place 0. Roles are one value, so that the statement and its plan
# are the same for any number of them.
_SHOWN_SQL: Final = """
WITH shown AS (
    SELECT number, block, array_agg(place ORDER BY place) AS places
    FROM unnest(%s::int[], %s::uuid[], %s::int[]) AS messages (number, block, place)
    GROUP BY number, block
)
SELECT shown.number, b.full_content, told.ids,
    EXISTS (
        SELECT FROM chats_chatmessage AS m WHERE m.id = ANY(told.ids) AND m.role = ANY(%s::text[])
    )
FROM shown JOIN chats_messageblock AS b ON b.id = shown.block
CROSS JOIN LATERAL (
    SELECT CASE WHEN 0 = ANY(shown.places) THEN b.messages
        ELSE ARRAY(SELECT b.messages[place] FROM unnest(shown.places) AS place) END AS ids
) AS told
ORDER BY shown.number
"""
