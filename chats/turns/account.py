"""Account for the provider calls of one turn: their rows in the ledger, and the turn's own total.

Everything is part of the caller's transaction. It counts what the provider reports, or else an
estimate, marked as one. A call whose worker died is recorded by the sweep that finds the turn
(`settle_lost`).
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import structlog
from django.conf import settings

from amber.lib.errors import RateLimited, Unavailable
from assistants.totals import count_tokens
from chats.messages.turn_messages import messages_of_turn, open_calls
from chats.models import Turn
from chats.turns.admission import prompt_tokens_of, renew
from engine.loop_events import Reply
from engine.messages import MessageRole, ProviderMessage
from engine.provider.model import Model, ModelProfile, ModelRequest, ProviderError, ReplyPart, Usage
from engine.text import tokens
from providers import registry
from providers.budgets.scopes import BudgetSubject
from providers.models import EmbeddingModel, LanguageModel
from providers.usage import ledger

logger = structlog.get_logger(__name__)

LOST: Final = "lost"
"""The outcome of a call whose worker died."""
RELEASED: Final = "released"
"""The outcome of a call that was cut off because its worker had to stop."""


class TurnAccount:
    """The calls of one turn.

    `model` and `asked` are those of the request under way, once composed.
    """

    def __init__(self) -> None:
        self.is_asking = False
        """Whether a request was made whose call is not in the ledger yet."""
        self.is_answered = False
        """Whether the provider has begun to answer it."""
        self.model: LanguageModel | None = None
        self.asked: Sequence[ProviderMessage] = ()
        self.retried: list[ProviderError] = []
        """The errors of calls that failed and were made again: they go into the ledger, too."""
        self.embedded: Sequence[tuple[EmbeddingModel, Usage]] = ()
        """What embedding the question used, until it is recorded."""

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Forget what the block recorded if it raises: its transaction is rolled back, and may be repeated."""
        before = self.is_asking, self.retried, self.embedded
        try:
            yield
        except BaseException:
            self.is_asking, self.retried, self.embedded = before
            raise

    def watch_model(self, model: Model) -> Model:
        """Wrap the model, so that this account knows of each request that is made."""
        return _WatchedModel(model, self)

    def note_retry(self, error: ProviderError, _: int) -> None:
        """Remember a call that failed; another one will be made after a pause."""
        self.retried.append(error)
        self.is_asking = False

    def note_answer(self) -> None:
        self.is_answered = True

    def usage_of(self, usage: Usage | None, text: str, reasoning: str = "") -> tuple[Usage, bool]:
        """Return the provider's count, or an estimate, and whether it is an estimate.

        Where it counts no reasoning apart, that gets its share of the completion.
        """
        if usage is not None and (usage.reasoning_tokens or not reasoning):
            return usage, False
        if usage is not None:
            share = len(reasoning) / (len(reasoning) + len(text))
            return replace(usage, reasoning_tokens=round(usage.completion_tokens * share)), False
        encoding = self.model.encoding if self.model else tokens.DEFAULT_ENCODING
        thought = tokens.count_text(reasoning, encoding)
        asked = tokens.count_messages(self.asked, encoding, settings.AMBER_IMAGE_TOKENS)
        said = tokens.count_text(text, encoding)
        return Usage(asked, said + thought, reasoning_tokens=thought), True

    def settle(
        self,
        turn: Turn,
        usage: Usage,
        *,
        estimated: bool,
        reply: Reply | None = None,
        outcome: str = "ok",
    ) -> None:
        """Record the retried calls, and the one under way if a request was made."""
        for error in self.retried:
            self._record(turn, Usage(), outcome=error.code)
        self.retried = []
        if not self.is_asking:
            return
        self.is_asking = False
        self._record(
            turn,
            usage,
            estimated=estimated,
            outcome=outcome,
            first_token_ms=_ms(reply.first_token_seconds) if reply else None,
            latency_ms=round(reply.seconds * 1_000) if reply else 0,
        )
        turn.usage = _add(turn.usage, usage)

    def settle_embedding(self, turn: Turn) -> None:
        for model, usage in self.embedded:
            self._record(turn, usage, model=model)
        self.embedded = ()

    def renew_reservation(self, turn: Turn, reply: Reply, usage: Usage) -> RateLimited | None:
        """Reserve budget for the next request, if the turn goes on by itself.

        Return the error if no budget affords it.
        """
        client_tools = {tool["name"] for tool in turn.options.get("tools", ())}
        rests = reply.unapproved or any(call.name in client_tools for call in reply.calls)
        if rests or self.model is None:
            return None
        return renew(turn, self.model, usage)

    def _record(
        self, turn: Turn, usage: Usage, *, model: EmbeddingModel | None = None, **fields: Any
    ) -> None:
        """Record one provider call: of the answering model, unless another is named."""
        assert self.model is not None
        _record(turn, model or self.model, usage, **fields)


class _WatchedModel:
    """A `Model` that reports its requests to an account."""

    def __init__(self, model: Model, account: TurnAccount) -> None:
        self._model = model
        self._account = account

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        self._account.is_asking, self._account.is_answered = True, False
        return self._model.stream(request)


def settle_lost(turn: Turn) -> None:
    """Record the call that was under way when the turn's worker died, estimated from its row.

    Nothing says at which moment it died: unless tools were running, a request counts as made.
    `turn` is locked, as its worker left it; the caller saves its `usage`. Costs up to ten queries.
    """
    if open_calls(turn):
        return
    named = turn.assistant.model if turn.assistant else turn.options.get("model", "")
    alias = (turn.manifest or {}).get("model") or named
    try:
        model = registry.resolve(alias, wants_vision=False).row
    except Unavailable:
        logger.warning("lost_call_not_recorded", turn_id=str(turn.pk), reason="no model is enabled")
        return
    said = tokens.count_text(turn.partial_text, model.encoding)
    thought = tokens.count_text(turn.partial_reasoning, model.encoding)
    sent = min(_sent_tokens(turn, model), model.context_tokens)
    usage = Usage(sent, said + thought, reasoning_tokens=thought)
    _record(turn, model, usage, estimated=True, outcome=LOST)
    turn.usage = _add(turn.usage, usage)
    if turn.assistant_id:
        count_tokens(turn.assistant_id, usage.total_tokens)


def _sent_tokens(turn: Turn, model: LanguageModel) -> int:
    """Estimate the request under way: what the manifest counts, and what the turn wrote since.

    A worker that died within its first second wrote no manifest: then it is what was reserved.
    """
    manifest = turn.manifest or {}
    if "tokens" not in manifest:
        return prompt_tokens_of(turn)
    sent = sum(count for part, count in manifest["tokens"].items() if part != "limit")
    counted = {message["id"] for message in manifest["messages"]}
    for message in messages_of_turn(turn):
        # The manifest counts the library's message as passages.
        if message["id"] not in counted and message["role"] != MessageRole.KNOWLEDGE:
            call = message["tool_call"]
            arguments = call["arguments"] if call else ""
            sent += tokens.count_text(message["content"] + arguments, model.encoding)
    return int(sent)


def _record(turn: Turn, model: LanguageModel | EmbeddingModel, usage: Usage, **fields: Any) -> None:
    ledger.record(
        model,
        usage,
        **BudgetSubject.of(turn).columns(),
        turn_id=turn.pk,
        is_budgeted=turn.is_budgeted,
        **fields,
    )


def token_fields(usage: Usage) -> dict[str, int]:
    """Return the counts under the names that messages and turns have for them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _add(total: dict[str, int], usage: Usage) -> dict[str, int]:
    counted = {
        **token_fields(usage),
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    return {name: total.get(name, 0) + number for name, number in counted.items()}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
