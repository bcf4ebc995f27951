"""Provide the tool `search_conversation`, which finds what was said in this chat, however long ago.

It ranks all messages of the path that the turn answers, as recall does, but without a gate: whoever
searches wants to see the nearest there is. What was said several times in the same words takes one place,
with all its times. Text of abandoned branches is not found, nor the question that the tool is called for.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.db.models.functions import MD5
from django.utils import timezone

from amber.lib.errors import Unavailable
from chats.context.block_search import PathSearch
from chats.context.recall import FoundMessage, find_messages
from chats.messages import transcript
from chats.messages.block_paths import last_block
from chats.messages.block_words import spoken_of
from chats.models import ChatMessage, Turn
from engine.context.blocks import line_of
from engine.history.sent_at import stamp
from engine.messages import SPEAKERS, facts_of
from engine.provider.model import ProviderError
from engine.text.dates import in_zone
from libraries.embedding.store import embed_query
from providers.registry import default_embedding_model
from tools.calling.registry import register_tool
from tools.protocol import ToolContext, ToolError

MAX_MESSAGES: Final = 10
_LOOKED_AT: Final = 100
"""How many matches are examined: some lie on abandoned branches, and some repeat others."""

_MOST_TIMES: Final = 5
"""How many dates are given for a message that was repeated."""

_AROUND: Final = 5
"""How many of the best matches are shown with their neighbours: a question without its answer says little."""

EMBEDDING_SECONDS: Final = 5.0
"""A call of a tool can wait longer for a vector than the beginning of an answer."""

_MESSAGE_CHARS: Final = 1_500
_NEIGHBOUR_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class _Path:
    """The messages that are searched: those before the question. `unsealed` are in no block yet."""

    ids: frozenset[UUID]
    unsealed: Sequence[ChatMessage]
    end: int


@dataclass(slots=True)
class _Match:
    """A message that was found, where in its line, and `again`: when it was repeated."""

    offset: int
    again: list[datetime] = field(default_factory=list)


@register_tool(when=lambda turn: turn.has_sealed_blocks, idempotent=True, harmless=True)
def search_conversation(
    context: ToolContext,
    query: Annotated[str, "Words that were said, or what was talked about"],
) -> str:
    """Finds what was said earlier in this conversation, with its time. Use it whenever the user
    refers to something that you no longer see."""
    if context.chat_id is None:
        raise ToolError("This conversation has no earlier part.")
    zone = ZoneInfo(context.time_zone)
    path = _path_of(context, context.chat_id)
    search = PathSearch(
        context.chat_id,
        before_position=path.end,
        latest=[spoken_of(message) for message in path.unsealed],
        **_vector_of(query, context),
    )
    today = timezone.now().astimezone(zone).date()
    found = find_messages(search, query, today=today, limit=_LOOKED_AT)
    best = _join_repeats([each for each in found if each.id in path.ids])
    if not best:
        return "Nothing of that kind was said in this conversation. Try other words."
    rows = _with_neighbours([*best], path)
    listed = [row for row in rows if row.pk in best]
    around = [row for row in rows if row.pk not in best]
    return "\n\n".join(
        filter(None, [_render_matches(listed, best, zone), _render_around(around, zone)])
    )


def _path_of(context: ToolContext, chat_id: UUID) -> _Path:
    """Read the path to the turn's tip, as far as it is older than the turn's question."""
    turns = Turn.objects.filter(pk=context.turn_id) if context.turn_id else Turn.objects.none()
    tip_id, asked_at = turns.values_list("tip_id", "question__position").first() or (None, None)
    end = 2**31 - 1 if asked_at is None else asked_at
    last = last_block(chat_id)
    sealed_end = last.last_position + 1 if last else 0
    newest = transcript.path(chat_id, tip_id, from_position=sealed_end)
    unsealed = [message for message in newest if message.position < end]
    later = {message.pk for message in newest if message.position >= end}
    ids = frozenset(transcript.path_ids(chat_id, tip_id) - later)
    return _Path(ids, unsealed, end)


def _join_repeats(found: Sequence[FoundMessage]) -> dict[UUID, _Match]:
    """Return the messages without repeats, best first, each with the times when it was repeated. One query.

    A second "Have a great day!" tells nothing new, and would take the place of what is asked for.
    """
    rows = ChatMessage.objects.filter(pk__in=[each.id for each in found])
    said: dict[UUID, tuple[Hashable, datetime]] = {
        pk: ((role, digest) if facts_of(role).speaker in SPEAKERS else pk, at)
        for pk, role, digest, at in rows.values_list("pk", "role", MD5("content"), "created_at")
    }
    matches: dict[UUID, _Match] = {}
    firsts: dict[Hashable, UUID] = {}
    for each in found:
        if each.id not in said:  # deleted meanwhile
            continue
        words, at = said[each.id]
        first = firsts.setdefault(words, each.id)
        if first == each.id:
            matches[first] = _Match(each.offset)
        else:
            matches[first].again.append(at)
    return dict(list(matches.items())[:MAX_MESSAGES])


def _with_neighbours(best: Sequence[UUID], path: _Path) -> list[ChatMessage]:
    """Return the messages, best first in `best`, with those around the first few; in their order."""
    around = Q(pk__in=best) | Q(parent__in=best[:_AROUND]) | Q(children__in=best[:_AROUND])
    rows = ChatMessage.objects.filter(around).distinct().select_related("assistant", "file")
    on_path = [row for row in rows.defer("search") if row.pk in path.ids]
    return sorted(on_path, key=lambda row: row.position)


def _vector_of(query: str, context: ToolContext) -> dict[str, Any]:
    """Return the query's vector and its model.

    Nothing if the embedder fails, then words must do; and nothing of the built-in one, which knows no
    more than they do.
    """
    try:
        model = default_embedding_model()
        if model.provider.is_offline:
            return {}
        vector = embed_query(
            query,
            model=model,
            organization_id=context.organization_id,
            timeout_seconds=EMBEDDING_SECONDS,
        )
    except (ProviderError, Unavailable):
        return {}
    return {"vector": vector, "model_id": model.pk}


def _render_matches(
    messages: Iterable[ChatMessage], matches: Mapping[UUID, _Match], zone: tzinfo
) -> str:
    lines = [
        _line(message, zone, matches[message.pk].offset, _MESSAGE_CHARS)
        + _render_times(matches[message.pk].again, zone)
        for message in messages
    ]
    return "\n".join(["Messages with these words:", *lines])


def _render_times(times: Sequence[datetime], zone: tzinfo) -> str:
    """Return the times at which the same was said, the latest if there are many."""
    told = [f"{in_zone(at, zone):%Y-%m-%d %H:%M}" for at in sorted(times)[-_MOST_TIMES:]]
    more = len(times) - len(told)
    rest = [f"{more} more times"] if more else []
    return f" (also said: {', '.join([*told, *rest])})" if told else ""


def _render_around(messages: Iterable[ChatMessage], zone: tzinfo) -> str:
    lines = [_line(message, zone, 0, _NEIGHBOUR_CHARS) for message in messages]
    shown = [line for line in lines if line]
    return "\n".join(["What was said right before and after them:", *shown]) if shown else ""


def _line(message: ChatMessage, zone: tzinfo, offset: int, most_chars: int) -> str:
    """Return a message with its time and who said it; of a long one the part that was found."""
    line = line_of(spoken_of(message))
    if not line:
        return ""
    start = offset if len(line) > most_chars else 0
    speaker = f"{line.partition(':')[0]}: " if start else ""
    said = f"{'… ' if start else ''}{line[start : start + most_chars]}"
    return f"[{stamp(message.created_at, zone)}] {speaker}{said}"
