"""Gathers what one request to the model is made of: prompts, the tail of the chat, tools.

Reads only the tail (`AMBER_CONTEXT_TAIL_TOKENS`) and the system messages that open the path, so a
chat of 10,000 messages costs what one of 100 costs. Decides nothing about form: `engine.history`
does. What went in, and what was left out and why, is the turn's manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from django.conf import settings

from amber.lib.errors import AmberError, Invalid
from assistants.recipe import Recipe, recipe_of, toolbox_of
from chats import transcript
from chats.models import ChatMessage, MessageRole, Turn
from chats.roles import ASKING_ROLES
from engine import tokens
from engine.budget import BudgetError, fit
from engine.history import HistoryProfile, NoHumanMessage, normalise
from engine.messages import Attachment, Author, Message, ProviderMessage, Role, ToolCall
from engine.model import Model, ModelProfile, ModelRequest
from engine.tools import MAX_OFFERED_TOOLS
from libraries.file_attachments import attachment_of
from libraries.models import File
from providers import registry
from providers.models import LanguageModel
from tools.protocol import ToolContext
from tools.result_files import ResultFiles
from tools.toolbox import ToolLimits, TurnToolbox

RELATED = ("chat", "assistant", "user", "organization", "question")
"""What a turn is claimed with, so that `prepare` need not read it again."""

BYTES_PER_TOKEN = 4
"""English and Chinese alike: about 4 bytes of UTF-8 a token (o200k_base); for cutting, not counting."""


_TOO_MANY = f"At most {MAX_OFFERED_TOOLS} functions are offered."


@dataclass(frozen=True, slots=True)
class Prepared:
    """All a runner needs."""

    row: LanguageModel
    model: Model
    request: ModelRequest
    toolbox: TurnToolbox
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the conversation. When it `is_cut`, `opening` holds the chat's first prompts."""

    messages: list[ChatMessage]
    opening: list[str] = field(default_factory=list)
    is_cut: bool = False

    @property
    def has_image(self) -> bool:
        return any(m.file and m.file.is_image and not m.file.is_expired for m in self.messages)


def prepare(turn: Turn) -> Prepared:
    """Read what the turn (with `RELATED`) needs and compose its next request: 2 to 6 queries.

    Raises Invalid (no_human_message), AmberError (context_too_long) and Unavailable (no model).
    """
    tail = _tail(turn)
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


def _tail(turn: Turn) -> Tail:
    """The newest messages of the path within the tail's budget; from a question on, if cut."""
    if turn.chat is None:
        return Tail(_stateless_messages(turn))
    max_bytes = settings.AMBER_CONTEXT_TAIL_TOKENS * BYTES_PER_TOKEN
    found = transcript.path(
        turn.chat.pk, turn.tip_id, max_bytes=max_bytes, through=turn.question, brief=True
    )
    if not found or found[0].parent_id is None:
        return Tail(found)
    opening = [m.content for m in transcript.opening(found[0])]
    return Tail(_from_a_question(found), opening, is_cut=True)


def _from_a_question(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Without the part of an exchange that the cut left at the front."""
    for number, message in enumerate(messages):
        if message.role in ASKING_ROLES:
            return messages[number:]
    return messages


def _stateless_messages(turn: Turn) -> list[ChatMessage]:
    given = (turn.input or {}).get("messages", [])
    written = (turn.output or {}).get("messages", [])
    files = _files_of(written)
    return [
        ChatMessage(
            role=m["role"],
            content=m["content"],
            tool_call=m.get("tool_call"),
            assistant=turn.assistant if m["role"] == MessageRole.ASSISTANT else None,
            file=files.get(m.get("file_id")),
        )
        for m in [*given, *written]
    ]


def _files_of(messages: Sequence[dict[str, Any]]) -> dict[str | None, File]:
    """The files of messages in their wire form, by id. No query where there are none."""
    ids = [m["file_id"] for m in messages if m["file_id"]]
    return {str(file.pk): file for file in File.objects.filter(pk__in=ids)} if ids else {}


def _compose(
    turn: Turn, tail: Tail, prompts: Sequence[str], profile: ModelProfile
) -> list[ProviderMessage]:
    """The request's messages in the provider's form, not yet cut to the model's window."""
    try:
        return normalise(
            [_to_engine(m, vision=profile.vision) for m in tail.messages],
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


def _to_engine(message: ChatMessage, *, vision: bool) -> Message:
    call = message.tool_call
    return Message(
        role=cast(Role, message.role),
        content=message.content,
        created_at=message.created_at,
        assistant=_author(message),
        tool_call=ToolCall(call["id"], call["name"], call["arguments"], call.get("reply_id"))
        if call
        else None,
        file=_attachment(message, vision=vision),
    )


def _attachment(message: ChatMessage, *, vision: bool) -> Attachment | None:
    """What a `file` message shows; of what a tool made the text is not even loaded."""
    file = message.file
    if message.role != MessageRole.FILE or file is None or file.is_expired:
        return None
    return attachment_of(file, vision=vision, text=None if message.tool_call else file.text)


def _author(message: ChatMessage) -> Author | None:
    if message.role != MessageRole.ASSISTANT or not message.assistant:
        return None
    written_by = message.assistant
    return Author(str(written_by.pk), written_by.name, written_by.description)
