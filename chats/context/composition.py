"""Compose a request's messages from what was gathered, the same way each time.

It is used when a turn asks the model, and again when the request is rebuilt from the manifest: so
it takes values only, and reads nothing. `engine.history.normaliser` decides the form,
`engine.context.budget` what must go.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from typing import Any, Final, cast

from django.conf import settings

from amber.lib.errors import AmberError, Invalid
from chats.context.tail import Shorten, as_engine_message, posted_file
from chats.models import ChatMessage
from engine.context.budget import BudgetError, fit
from engine.history.normaliser import (
    HistoryProfile,
    NoHumanMessage,
    RenderedHistory,
    place_prompts,
    render_history,
)
from engine.messages import ASKING_ROLES, SYSTEM_ROLES, ProviderMessage
from engine.provider.model import SystemPosition
from engine.text import tokens
from engine.text.excerpt import excerpt

MIN_FILE_TOKENS: Final = 100
"""Each file gets this much, however many there are and however small the window: less would tell nothing."""


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """How the answering model and the user want a request to look. JSON in the manifest."""

    system_position: str
    vision: bool
    encoding: str
    time_zone: str
    assistant_id: str
    history_is_cut: bool
    limit_tokens: int
    mark: str = ""
    """Stands around what strangers wrote (`engine.history.prompt.mark_untrusted`); empty in old rows,
    and for bare models."""
    sender: str = ""
    """Marks the model that gets its own fields back (`engine.provider_fields`); empty in old
    rows."""
    file_tokens: int = 0
    """How much the model reads of one file; 0 in old rows, and means all of it."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ComposedRequest:
    """The messages of a request, and how many older ones did not fit into the model's window."""

    messages: list[ProviderMessage]
    dropped: int


def compose(
    rows: Sequence[ChatMessage],
    *,
    system_prompts: Sequence[str],
    volatile: Sequence[str],
    form: PromptFormat,
    history: RenderedHistory | None = None,
) -> ComposedRequest:
    """Render the rows, unless `history` has them already, and fit them into the model's window.

    Earlier unanswered questions become one text with the last one, which is never dropped. If it
    does not fit with them, they are dropped, so that one long question does not end a chat. Raises
    Invalid (no_human_message) and AmberError (context_too_long).
    """
    placed = partial(
        place_prompts,
        system_prompts=system_prompts,
        volatile=volatile,
        position=cast(SystemPosition, form.system_position),
    )
    messages = placed(history or render_rows(rows, form))
    try:
        fitted = _fit(messages, form)
    except BudgetError as error:
        alone = _from_the_last_question(rows)
        if len(alone) == len(rows):
            raise _too_long(error) from None
        try:
            fitted = _fit(placed(render_rows(alone, form)), form)
        except BudgetError as error:
            raise _too_long(error) from None
        # At least one: what had been merged may stand alone now, so that as many are left.
        return ComposedRequest(fitted, max(len(messages) - len(fitted), 1))
    return ComposedRequest(fitted, len(messages) - len(fitted))


def render_rows(rows: Sequence[ChatMessage], form: PromptFormat) -> RenderedHistory:
    """Return the rows as the model reads them. Raises Invalid (no_human_message)."""
    shorten = make_shortener(rows, form)
    try:
        return render_history(
            [
                as_engine_message(row, vision=form.vision, sender=form.sender, shorten=shorten)
                for row in rows
            ],
            profile=HistoryProfile(
                system_position=cast(SystemPosition, form.system_position),
                vision=form.vision,
                time_zone=form.time_zone,
                mark=form.mark,
            ),
            responding_assistant_id=form.assistant_id,
            history_is_cut=form.history_is_cut,
        )
    except NoHumanMessage:
        raise Invalid(code="no_human_message") from None


def make_shortener(rows: Sequence[ChatMessage], form: PromptFormat) -> Shorten:
    """Return a function that cuts a file's text to the parts that matter to the last question.

    All files together get half of the window, each the same share.
    """
    count = sum(1 for row in rows if posted_file(row) is not None)
    if not form.file_tokens or not count:
        return str
    question = next((row.content for row in reversed(rows) if row.role in ASKING_ROLES), "")
    share = form.limit_tokens // 2 // count
    limit_tokens = max(min(form.file_tokens, share), MIN_FILE_TOKENS)
    return partial(excerpt, question=question, limit_tokens=limit_tokens, encoding=form.encoding)


def _from_the_last_question(rows: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return what follows the last question but one, and the system messages that open it all."""
    asking = [number for number, row in enumerate(rows) if row.role in ASKING_ROLES]
    if len(asking) < 2:
        return list(rows)
    opening = takewhile(lambda row: row.role in SYSTEM_ROLES, rows)
    return [*opening, *rows[asking[-2] + 1 :]]


def _fit(messages: list[ProviderMessage], form: PromptFormat) -> list[ProviderMessage]:
    """Drop old exchanges that the model's window cannot hold. Raises BudgetError.

    Bytes bound tokens from above: most requests fit by that alone and are not counted.
    """
    image_tokens = settings.AMBER_IMAGE_TOKENS
    at_most = sum(tokens.at_most_message_tokens(m, image_tokens) for m in messages)
    if at_most <= form.limit_tokens:
        return messages
    count = partial(tokens.count_message, encoding=form.encoding, image_tokens=image_tokens)
    return fit(messages, limit_tokens=form.limit_tokens, count=count).messages


def _too_long(error: BudgetError) -> AmberError:
    return AmberError(
        f"The question and the prompt need {error.needed_tokens} tokens, but the model accepts "
        f"only {error.limit_tokens}. Shorten them or choose another model.",
        code="context_too_long",
    )
