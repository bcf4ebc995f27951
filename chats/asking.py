"""Ask a library a single question, without a chat: a prompt over the passages that are found.

The answer comes from a stateless turn of a bare model, so that it is accounted for, limited and
survives a lost worker as every answer does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from accounts.principal import Principal
from chats.context.call_options import CallOptions
from chats.context.knowledge import Knowledge, cited_in, find_knowledge
from chats.models import Turn
from chats.services import start_stateless_turn
from engine.context.recall import question_of
from engine.history.prompt import ask_prompt
from engine.messages import MessageRole
from engine.provider.model import ProviderError
from engine.text.tokens import DEFAULT_ENCODING
from libraries.embedding.store import embed_query
from libraries.models import Library

ASK_INSTRUCTIONS = (
    "Answer the question from the context alone. Cite what you use by its number, such as [1]. "
    "If the context does not hold the answer, say so."
)


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """The turn that will answer, and the passages it was given."""

    turn: Turn
    knowledge: Knowledge


def ask_library(
    library: Library,
    principal: Principal,
    *,
    question: str,
    history: Sequence[Mapping[str, str]] = (),
    model: str = "",
) -> LibraryQuestion:
    """Search the library and start the turn.

    `history` holds {"user", "assistant"} pairs, oldest first. `library` has its `embedding_model`
    and provider selected. Raises what `start_stateless_turn` raises.
    """
    searched = question_of([*(pair["user"] for pair in history), question]) or question
    knowledge = find_knowledge(
        library,
        searched,
        user_id=principal.user_id,
        limit_tokens=settings.AMBER_PASSAGE_TOKENS,
        encoding=DEFAULT_ENCODING,
        vectors=_vectors(library, principal, searched),
    )
    prompt = ask_prompt(
        question,
        passages=[
            (p["document"]["path"] or p["document"]["name"], p["content"])
            for p in knowledge.passages
        ],
        turns=[(pair["user"], pair["assistant"]) for pair in history],
    )
    turn = start_stateless_turn(
        principal,
        messages=[{"role": MessageRole.HIDE_HUMAN, "content": prompt}],
        options=CallOptions(
            model=model, is_bare=True, is_unattended=True, prompts=(ASK_INSTRUCTIONS,)
        ),
    )
    return LibraryQuestion(turn, knowledge)


def answer_of(turn: Turn, knowledge: Knowledge) -> dict[str, Any]:
    """Return the turn's answer and the passages it cites, or all it was given if it cites none."""
    written = (turn.output or {}).get("messages", [])
    answer = "".join(m["content"] for m in written if m["role"] == MessageRole.ASSISTANT)
    cited = cited_in(answer, knowledge.passages)
    return {"answer": answer, "citations": cited or list(knowledge.passages)}


def _vectors(library: Library, principal: Principal, question: str) -> dict[Any, Any]:
    """Return the question's vector by model; nothing if the embedder fails, then words must do."""
    model = library.embedding_model
    try:
        vector = embed_query(
            question,
            model=model,
            organization_id=principal.organization_id,
            user_id=principal.user_id,
        )
    except ProviderError:
        return {}
    return {model.pk: vector}
