"""Reads what a person said and keeps the durable facts about them.

The model is shown what is known already and what was said, both numbered, and answers with decisions
(add, update, supersede, none) as JSON. Only what the person said counts: a fact without one of
their messages as evidence is dropped, so that recalled text, prompts, tool results and the
assistant's own words never become memories. With the offline model only explicit statements are
found (`memory.statements`).

Refuses to choose what it is shown: the caller gives the messages, and an embedder and a model of
the owner's.
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

import orjson
import structlog
from pydantic import BaseModel, Field, ValidationError

from amber.lib.bridge import run_on_loop
from engine.model import Model, ModelRequest, ReplyEnd, TextChunk, Usage
from engine.reply import DEFAULT_PATIENCE, reply
from memory.facts import Embedded, Fact, Outcome, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from memory.recall import recall
from memory.sameness import subject_of
from memory.statements import explicit_statements

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

logger = structlog.get_logger(__name__)

MAX_KNOWN: Final = 30
"""How many of the owner's memories the model is shown: those near to what was said."""

KNOWN_TOKENS: Final = 2_000
MAX_SAID_CHARS: Final = 12_000
MAX_FACTS: Final = 10
MIN_CONFIDENCE: Final = 0.5
MAX_OUTPUT_TOKENS: Final = 1_000

PROMPT: Final = """\
You keep a list of durable facts about a user, for an assistant that talks to them again later.
Read the messages and decide what to add to the list.

Keep: who they are, people and things in their life, preferences, plans with dates, decisions, \
constraints, what they work on, what they ask to be remembered.
Leave out: what holds only for this conversation, what the assistant said, questions, general \
knowledge, secrets such as passwords, and everything that is on the list already.

Write each fact as one short sentence about "the user", in the language of the message, whole \
without the conversation (names instead of "he", dates instead of "tomorrow").

Answer with JSON only: {"facts": [{"action": "add" | "update" | "supersede", "content": "…", \
"memory": <number of the listed fact it makes more exact or contradicts, for update and \
supersede>, "evidence": [<numbers of the messages it rests on>], "confidence": <0 to 1>}]}
Answer {"facts": []} when there is nothing to keep; that is the usual case."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the conversation. Only what the user said is evidence."""

    id: UUID
    by_user: bool
    text: str


class Decision(BaseModel):
    """What the model decided about one fact."""

    action: Literal["add", "update", "supersede", "none"] = "add"
    content: str = Field(default="", max_length=2_000)
    memory: int | None = None
    evidence: list[int] = Field(default_factory=list, max_length=50)
    confidence: float = Field(default=0.8, ge=0, le=1)


class Decisions(BaseModel):
    facts: list[Decision] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Extractor:
    """What extraction works with. `embed` returns (n, D) float32 and may raise ProviderError.

    `model` is None for the offline model: then explicit statements are all that is found.
    """

    model: Model | None
    embed: "Callable[[Sequence[str]], Vectors]"
    embedding_model_id: UUID
    on_usage: Callable[[Usage], None] = lambda _: None


def extract(
    owner: Owner,
    messages: Sequence[Said],
    *,
    extractor: Extractor,
    assistant_id: UUID | None = None,
) -> list[tuple[Memory, Outcome]]:
    """What was newly kept, superseded or confirmed. At most one model call and two of the embedder.

    `assistant_id` limits new facts to one assistant. Raises ProviderError; then nothing was kept.
    """
    said = "\n".join(message.text for message in messages if message.by_user).strip()
    if not said:
        return []
    if extractor.model is None:
        facts = _stated(owner, messages)
    else:
        known = _known(owner, said, extractor)
        decisions = _ask(extractor, known, messages)
        facts = _usable(decisions, known, messages)
    if not facts:
        return []
    vectors = extractor.embed([fact.content for fact, _ in facts])
    kept = []
    for (fact, replaces), vector in zip(facts, vectors, strict=True):
        scoped = Fact(fact.content, fact.evidence, fact.confidence, assistant_id)
        embedded = Embedded(vector, extractor.embedding_model_id)
        kept.append(remember(owner, scoped, embedded=embedded, replaces=replaces))
    return kept


def _known(owner: Owner, said: str, extractor: Extractor) -> list[Memory]:
    """The memories that what was said may repeat, refine or contradict."""
    vector = extractor.embed([said[:MAX_SAID_CHARS]])[0]
    near = recall(
        owner,
        said[:MAX_SAID_CHARS],
        limit_tokens=KNOWN_TOKENS,
        vector=vector,
        model_id=extractor.embedding_model_id,
    )
    newest = valid_of(owner).exclude(pk__in=[memory.pk for memory in near]).order_by("-created_at")
    return [*near, *newest[: max(MAX_KNOWN - len(near), 0)]]


def _stated(owner: Owner, messages: Sequence[Said]) -> list[tuple[Fact, UUID | None]]:
    """Explicit statements; one about the same subject as a memory takes its place."""
    subjects = {subject_of(memory.content): memory.pk for memory in valid_of(owner)}
    subjects.pop(None, None)
    return [
        (Fact(statement, [message.id]), subjects.get(subject_of(statement)))
        for message in messages
        if message.by_user
        for statement in explicit_statements(message.text)
    ]


def _ask(extractor: Extractor, known: Sequence[Memory], messages: Sequence[Said]) -> list[Decision]:
    """One call of the model. An answer that is no such JSON decides nothing."""
    request = ModelRequest(
        messages=[
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": _question(known, messages)},
        ],
        temperature=0.1,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        response_format={"type": "json_object"},
    )
    answer, usage = run_on_loop(lambda _: _answer(extractor.model, request))
    extractor.on_usage(usage)
    try:
        return Decisions.model_validate(orjson.loads(_json_in(answer))).facts[:MAX_FACTS]
    except (orjson.JSONDecodeError, ValidationError):
        logger.info("extraction_unreadable", chars=len(answer))
        return []


def _question(known: Sequence[Memory], messages: Sequence[Said]) -> str:
    listed = "\n".join(f"{n}. {memory.content}" for n, memory in enumerate(known, 1))
    spoken = "\n".join(
        f"{n}. {'User' if message.by_user else 'Assistant'}: {message.text[:MAX_SAID_CHARS]}"
        for n, message in enumerate(messages, 1)
    )
    return f"<known>\n{listed or '(nothing yet)'}\n</known>\n<messages>\n{spoken}\n</messages>"


async def _answer(model: Model | None, request: ModelRequest) -> tuple[str, Usage]:
    assert model is not None, "the offline model is not asked"
    texts: list[str] = []
    usage = Usage()
    async with aclosing(reply(model, request, patience=DEFAULT_PATIENCE)) as parts:
        async for part in parts:
            match part:
                case TextChunk(text=text):
                    texts.append(text)
                case ReplyEnd(usage=counted):
                    usage = counted or usage
    return "".join(texts), usage


def _json_in(answer: str) -> str:
    """From the first brace to the last: models like to wrap JSON in a fence or a sentence."""
    return answer[answer.find("{") : answer.rfind("}") + 1]


def _usable(
    decisions: Sequence[Decision], known: Sequence[Memory], messages: Sequence[Said]
) -> list[tuple[Fact, UUID | None]]:
    """Those that rest on something the user said, with the memory they replace."""
    usable = []
    for decision in decisions:
        numbers = [n for n in decision.evidence if 1 <= n <= len(messages)]
        evidence = [messages[n - 1].id for n in numbers if messages[n - 1].by_user]
        is_kept = decision.action != "none" and decision.confidence >= MIN_CONFIDENCE
        if not (is_kept and evidence and decision.content.strip()):
            continue
        replaced = None
        if decision.action in ("update", "supersede") and decision.memory is not None:
            replaced = known[decision.memory - 1].pk if 1 <= decision.memory <= len(known) else None
        usable.append((Fact(decision.content, evidence, decision.confidence), replaced))
    return usable
