"""What the provider calls of one turn used: their rows in the ledger, and the turn's own total.

Everything is part of the caller's transaction. Counts what the provider says; where it does not say,
an estimate, marked as one.
"""

from collections.abc import Sequence
from typing import Any

from amber.lib.errors import RateLimited
from chats.admission import renew
from chats.models import Turn
from engine import tokens
from engine.happenings import Reply
from engine.messages import ProviderMessage
from engine.model import ProviderError, Usage
from providers import ledger
from providers.models import EmbeddingModel, LanguageModel


class TurnAccount:
    """`model` and `asked` are those of the request under way, once it was composed."""

    def __init__(self) -> None:
        self.model: LanguageModel | None = None
        self.asked: Sequence[ProviderMessage] = ()
        self.retried: list[ProviderError] = []
        """Calls that failed and were made again: they go into the ledger too."""
        self.embedded: Sequence[tuple[EmbeddingModel, Usage]] = ()
        """What embedding the question used, until it was recorded."""

    def usage_of(self, usage: Usage | None, text: str) -> tuple[Usage, bool]:
        """The provider's count, or our own estimate, and whether it is one."""
        if usage is not None:
            return usage, False
        encoding = self.model.encoding if self.model else tokens.DEFAULT_ENCODING
        asked = tokens.count_messages(self.asked, encoding)
        return Usage(asked, tokens.count_text(text, encoding)), True

    def settle(
        self,
        turn: Turn,
        usage: Usage,
        *,
        estimated: bool,
        reply: Reply | None = None,
        outcome: str = "ok",
    ) -> None:
        """This call and the retried ones before it."""
        if self.model is None:
            return
        for error in self.retried:
            self._record(turn, Usage(), outcome=error.code)
        self.retried = []
        self._record(
            turn,
            usage,
            estimated=estimated,
            outcome=outcome,
            first_token_ms=_ms(reply.first_token_seconds) if reply else None,
            latency_ms=_ms(reply.seconds) or 0 if reply else 0,
        )
        turn.usage = _add(turn.usage, usage)

    def settle_embedding(self, turn: Turn) -> None:
        for model, usage in self.embedded:
            self._record(turn, usage, model=model)
        self.embedded = ()

    def renewed(self, turn: Turn, reply: Reply, usage: Usage) -> RateLimited | None:
        """Whether the next request can be afforded, where the turn goes on by itself."""
        handed_back = {tool["name"] for tool in turn.options.get("tools", ())}
        rests = reply.unapproved or any(call.name in handed_back for call in reply.calls)
        if rests or self.model is None:
            return None
        return renew(turn, self.model, usage)

    def _record(
        self, turn: Turn, usage: Usage, *, model: EmbeddingModel | None = None, **fields: Any
    ) -> None:
        """One provider call: of the answering model, unless another is named."""
        assert self.model is not None
        ledger.record(
            model or self.model,
            usage,
            organization_id=turn.organization_id,
            user_id=turn.user_id,
            api_key_id=turn.api_key_id,
            guest_id=turn.guest_id,
            assistant_id=turn.assistant_id,
            turn_id=turn.pk,
            is_budgeted=turn.is_budgeted,
            **fields,
        )


def token_fields(usage: Usage) -> dict[str, int]:
    """As messages and turns hold them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _add(total: dict[str, int], usage: Usage) -> dict[str, int]:
    counted = {**token_fields(usage), "cached_tokens": usage.cached_tokens}
    return {name: total.get(name, 0) + number for name, number in counted.items()}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
