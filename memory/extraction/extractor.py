"""Ask a model what of a conversation is worth remembering, and read its decisions.

The model is shown what is known already and what was said, both numbered. What it answers is
checked for form alone; `memory.extraction.fact_finding` decides what of it counts.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import orjson
import structlog
from django.conf import settings
from pydantic import BaseModel, Field, ValidationError

from amber.lib.database.connections import release_connections
from amber.lib.workers.thread_bridge import run_on_loop
from engine.provider.model import Model, ModelRequest, ProviderError, ReplyEnd, TextChunk, Usage
from engine.provider.reply import RetryPolicy, reply
from memory.facts.facts import MAX_CONTENT_CHARS

logger = structlog.get_logger(__name__)

MAX_SAID_CHARS: Final = 12_000
MAX_ANSWER_CHARS: Final = 1_500
"""Limit of an answer, which is shown only so that the person's words are understood."""

MAX_FACTS: Final = 10
MAX_OUTPUT_TOKENS: Final = 1_000

PROMPT: Final = """\
You keep a list of durable facts about a user, for an assistant that talks to them again later.
Read the messages and decide what to add to the list.

Keep: who they are, people and things in their life, preferences, plans with dates, decisions, \
constraints, what they work on, what they ask to be remembered.
Leave out: what holds only for this conversation, what the assistant said, questions, general \
knowledge, secrets such as passwords, what they ask to be forgotten, and everything that is on the \
list already.

Write each fact as one short sentence about "the user", in the user's own words and language, whole \
without the conversation (names instead of "he", dates as YYYY-MM-DD instead of "tomorrow"). A fact \
whose words the user did not use in the messages you name as evidence is dropped.

Answer with JSON only: {"facts": [{"action": "add" | "update" | "supersede", "content": "…", \
"memory": <number of the listed fact it makes more exact or contradicts, for update and \
supersede>, "evidence": [<numbers of the messages it rests on>], "confidence": <0 to 1>}]}
Answer {"facts": []} when there is nothing to keep; that is the usual case."""


@dataclass(frozen=True, slots=True)
class ConversationText:
    """One message of the conversation. Only what the user said is evidence.

    `at` gives "tomorrow" its date.
    """

    id: UUID
    by_user: bool
    text: str
    at: datetime | None = None


class Decision(BaseModel):
    """The model's decision about one fact."""

    action: Literal["add", "update", "supersede", "none"] = "add"
    content: str = Field(default="", max_length=MAX_CONTENT_CHARS)
    memory: int | None = None
    evidence: list[int] = Field(default_factory=list, max_length=50)
    confidence: float = Field(default=0.8, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class ExtractionCall:
    """One call of the model, for the ledger. `outcome` is "ok" or the provider error's code."""

    usage: Usage
    outcome: str
    latency_ms: int = 0


def decide(
    model: Model,
    known: Sequence[str],
    messages: Sequence[ConversationText],
    *,
    on_call: Callable[[ExtractionCall], None],
) -> list[Decision]:
    """Ask the model and return its decisions. Raises ProviderError.

    One call, and a second one for a provider that knows no JSON mode.
    """
    request = ModelRequest(
        messages=[
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": _question(known, messages)},
        ],
        temperature=0.1,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        response_format={"type": "json_object"},
    )
    try:
        return _decisions(_answer(model, request, on_call))
    except ProviderError as error:
        if error.code != "provider_rejected":
            raise
    return _decisions(_answer(model, replace(request, response_format=None), on_call))


def _question(known: Sequence[str], messages: Sequence[ConversationText]) -> str:
    listed = "\n".join(f"{n}. {fact}" for n, fact in enumerate(known, 1))
    spoken = "\n".join(f"{n}. {_line(message)}" for n, message in enumerate(messages, 1))
    return f"<known>\n{listed or '(nothing yet)'}\n</known>\n<messages>\n{spoken}\n</messages>"


def _line(message: ConversationText) -> str:
    said_at = f"[{message.at:%Y-%m-%d}] " if message.at else ""
    if message.by_user:
        return f"{said_at}User: {message.text[:MAX_SAID_CHARS]}"
    return f"{said_at}Assistant: {message.text[:MAX_ANSWER_CHARS]}"


def _answer(model: Model, request: ModelRequest, on_call: Callable[[ExtractionCall], None]) -> str:
    """Return the whole reply, holding no database connection meanwhile. Raises ProviderError."""
    retried: list[ProviderError] = []
    release_connections()
    began = time.monotonic()
    usage, outcome = Usage(), "ok"
    try:
        text, usage = run_on_loop(lambda _: _reply(model, request, retried))
    except ProviderError as error:
        outcome = error.code
        raise
    finally:
        latency_ms = round((time.monotonic() - began) * 1_000)
        for failed in retried:
            on_call(ExtractionCall(Usage(), failed.code))
        on_call(ExtractionCall(usage, outcome, latency_ms))
    return text


async def _reply(
    model: Model, request: ModelRequest, retried: list[ProviderError]
) -> tuple[str, Usage]:
    texts: list[str] = []
    usage = Usage()
    retry_policy = RetryPolicy(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        idle_seconds=settings.AMBER_IDLE_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
    )
    told = reply(
        model, request, retry_policy=retry_policy, on_retry=lambda error, _: retried.append(error)
    )
    async with aclosing(told) as parts:
        async for part in parts:
            match part:
                case TextChunk(text=text):
                    texts.append(text)
                case ReplyEnd(usage=counted):
                    usage = counted or usage
    return "".join(texts), usage


def _decisions(answer: str) -> list[Decision]:
    """Read the decisions of an answer.

    Its JSON goes from the first brace to the last, since models like to wrap it in a fence or a
    sentence. An answer without such JSON decides nothing; a decision of another form is left out.
    """
    try:
        told = orjson.loads(answer[answer.find("{") : answer.rfind("}") + 1])
    except orjson.JSONDecodeError:
        logger.info("extraction_unreadable", chars=len(answer))
        return []
    listed = told.get("facts") if isinstance(told, dict) else None
    read = map(_decision, listed if isinstance(listed, list) else ())
    return [decision for decision in read if decision is not None][:MAX_FACTS]


def _decision(told: Any) -> Decision | None:
    try:
        return Decision.model_validate(told)
    except ValidationError:
        logger.info("decision_unreadable")
        return None
