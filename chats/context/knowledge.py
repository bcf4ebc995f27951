"""Search an assistant's library for a question, and find which passages an answer cites.

Passages are numbered from 1 and the model is asked to cite `[n]`, so only the number connects an
answer to its sources. Passages are stored whole with the message: a citation resolves as long as
the message lives, whatever becomes of the library.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from chats.models import ChatMessage, Turn
from engine.history.prompt import render_passages
from engine.messages import MessageRole
from engine.text import tokens
from engine.text.citations import marks_in
from libraries.models import Library
from libraries.retrieval.passages import passage_wire
from libraries.retrieval.search import BOTH_RETRIEVERS, search

MAX_PASSAGES: Final = 12


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The passages that were found, in their wire form, best first; empty if nothing matters.

    `notes` say what part of the search was left out.
    """

    passages: Sequence[dict[str, Any]] = ()
    notes: Sequence[str] = ()

    @property
    def content(self) -> str:
        """The passages as the model reads them; empty when nothing was found."""
        return render_passages(self.passages)


def find_knowledge(
    library: Library,
    question: str,
    *,
    user_id: UUID | None,
    limit_tokens: int,
    encoding: str,
    vectors: Mapping[UUID, Any],
) -> Knowledge:
    """Return the passages that matter, as many as the budget holds. Four to eight queries.

    `vectors` are by embedding model; without the library's only words are used.
    """
    has_vector = library.embedding_model_id in vectors
    found = search(
        [library],
        question,
        k=MAX_PASSAGES,
        query_vectors=vectors,
        user_id=user_id,
        retrievers=BOTH_RETRIEVERS if has_vector else ("words",),
    )
    count = partial(tokens.count_text, encoding=encoding)
    rest = limit_tokens
    kept: list[dict[str, Any]] = []
    for passage in found.relevant:
        rest -= count(passage.content)
        # The best one always stays: without any the model would read that the library has nothing.
        if rest < 0 and kept:
            break
        kept.append({**passage_wire(passage), "number": len(kept) + 1})
    return Knowledge(kept, found.notes)


def load_known_passages(turn: Turn) -> list[dict[str, Any]]:
    """Return the passages that earlier attempts at this turn found, by search or by tools.

    One query; none without a chat.
    """
    if turn.chat_id is None:
        said = (turn.output or {}).get("messages", [])
        return [passage for message in said for passage in message["citations"]]
    finders = (MessageRole.KNOWLEDGE, MessageRole.TOOL)
    rows = ChatMessage.objects.filter(turn=turn, role__in=finders).order_by("position")
    found = rows.values_list("citations", flat=True)
    return [passage for passages in found for passage in passages]


def cited_in(text: str, passages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the passages whose numbers the text cites, in the order of their first citation."""
    by_number = {passage["number"]: passage for passage in passages}
    numbers = [number for mark in marks_in(text) for number in mark.numbers]
    return [by_number[number] for number in dict.fromkeys(numbers) if number in by_number]
