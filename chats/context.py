"""Gathers what one request to the model is made of: prompts, the tail of the chat, tools.

Of a chat only its tail is read (`chats.tail`). Decides nothing about form: `engine.history`
does. What went in, and what was left out and why, is the turn's manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from amber.lib.errors import AmberError, Invalid
from assistants.bound_tools import bound_tools
from assistants.recipe import Recipe, recipe_of, toolbox_of
from chats.models import Turn
from chats.tail import Tail, as_engine_message, read_tail
from engine import tokens
from engine.budget import BudgetError, fit
from engine.history import HistoryProfile, NoHumanMessage, normalise
from engine.messages import ProviderMessage
from engine.model import Model, ModelProfile, ModelRequest
from engine.tools import MAX_OFFERED_TOOLS
from providers import registry
from providers.models import LanguageModel
from tools.protocol import ToolContext
from tools.result_files import ResultFiles
from tools.toolbox import ToolLimits, TurnToolbox

RELATED = ("chat", "assistant", "user", "organization", "question")
"""What a turn is claimed with, so that `prepare` need not read it again."""


_TOO_MANY = f"At most {MAX_OFFERED_TOOLS} functions are offered."


@dataclass(frozen=True, slots=True)
class Prepared:
    """All a runner needs."""

    row: LanguageModel
    model: Model
    request: ModelRequest
    toolbox: TurnToolbox
    manifest: dict[str, Any]


def prepare(turn: Turn) -> Prepared:
    """Read what the turn (with `RELATED`) needs and compose its next request: 2 to 6 queries.

    Raises Invalid (no_human_message), AmberError (context_too_long) and Unavailable (no model).
    """
    tail = read_tail(turn)
    recipe = _recipe(turn)
    resolved = registry.resolve(recipe.model, wants_vision=tail.has_image)
    profile = registry.profile_of(resolved.row)
    toolbox = _toolbox(turn, recipe, profile)
    messages = _compose(turn, tail, (*toolbox.prompts, *recipe.system_prompts), profile)
    fitted = _fit(messages, profile, toolbox)
    return Prepared(
        row=resolved.row,
        model=registry.engine_model(resolved.row),
        request=ModelRequest(
            messages=fitted,
            tools=tuple(toolbox.specs),
            temperature=recipe.temperature,
            top_p=recipe.top_p,
            **turn.options,
        ),
        toolbox=toolbox,
        manifest={
            "model": resolved.row.alias,
            "model_fallback": resolved.reason or None,
            "assistant_id": str(turn.assistant_id) if turn.assistant_id else None,
            "messages": [str(m.pk) for m in tail.messages],
            "history_is_cut": tail.is_cut,
            "dropped_messages": len(messages) - len(fitted),
            "tools": [spec.name for spec in toolbox.specs],
            "tools_left_out": [{"name": name, "reason": _TOO_MANY} for name in toolbox.left_out],
        },
    )


def _recipe(turn: Turn) -> Recipe:
    """The assistant's, or a bare model's when the assistant is gone."""
    if turn.assistant is None:
        return Recipe()
    return recipe_of(
        turn.assistant,
        organization_prompt=turn.organization.default_prompt,
        chat_prompt=(turn.chat.prompt or "") if turn.chat else "",
        is_public_api=turn.api_key_id is not None or turn.guest_id is not None,
    )


def _compose(
    turn: Turn, tail: Tail, prompts: Sequence[str], profile: ModelProfile
) -> list[ProviderMessage]:
    """The request's messages in the provider's form, not yet cut to the model's window."""
    try:
        return normalise(
            [as_engine_message(m, vision=profile.vision) for m in tail.messages],
            system_prompts=[*prompts, *tail.opening],
            volatile=(),
            profile=HistoryProfile(
                system_position=profile.system_position,
                vision=profile.vision,
                time_zone=_time_zone(turn),
            ),
            responding_assistant_id=str(turn.assistant_id),
            history_is_cut=tail.is_cut,
        )
    except NoHumanMessage:
        raise Invalid(code="no_human_message") from None


def _fit(
    messages: Sequence[ProviderMessage], profile: ModelProfile, toolbox: TurnToolbox
) -> list[ProviderMessage]:
    """Drop old exchanges that the model's window cannot hold.

    Bytes bound tokens from above: most requests fit by that alone and are not counted.
    """
    tools_tokens = sum(tokens.at_most_tokens(str(spec)) for spec in toolbox.specs)
    limit = (
        profile.context_tokens
        - profile.max_output_tokens
        - min(tools_tokens, profile.context_tokens // 4)
    )
    image_tokens = settings.AMBER_IMAGE_TOKENS
    at_most = sum(tokens.at_most_message_tokens(m, image_tokens) for m in messages)
    if at_most <= limit:
        return list(messages)
    count = partial(tokens.count_message, encoding=profile.encoding, image_tokens=image_tokens)
    try:
        return fit(messages, limit_tokens=limit, count=count).messages
    except BudgetError as exc:
        raise AmberError(
            f"The question and the prompt need {exc.needed_tokens} tokens; the model takes "
            f"{exc.limit_tokens}. Shorten them or choose another model.",
            code="context_too_long",
        ) from None


def _toolbox(turn: Turn, recipe: Recipe, profile: ModelProfile) -> TurnToolbox:
    context = ToolContext(
        organization_id=turn.organization_id,
        user_id=turn.user_id,
        guest_id=turn.guest_id,
        chat_id=turn.chat_id,
        assistant_id=turn.assistant_id,
        turn_id=turn.pk,
        time_zone=_time_zone(turn),
    )
    return toolbox_of(
        recipe,
        bound=bound_tools(turn.assistant) if turn.assistant else (),
        context=context,
        files=ResultFiles(context, vision=profile.vision),
        limits=ToolLimits(
            timeout_seconds=settings.AMBER_TOOL_TIMEOUT_SECONDS,
            result_tokens=settings.AMBER_TOOL_RESULT_TOKENS,
            count=partial(tokens.count_text, encoding=profile.encoding),
        ),
    )


def _time_zone(turn: Turn) -> str:
    return turn.user.time_zone if turn.user else "UTC"
