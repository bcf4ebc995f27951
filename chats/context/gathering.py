"""Gather what one request to the model is made of: prompts, tools, earlier talk, the chat's tail.

It works in three steps: `gather` reads the tail and says what could be looked up, `lay_out` reads what
needs no vector and renders the history, `prepare` looks up the rest and composes. The question is embedded
during the first two; a turn that still waits for its vector then holds no connection. Of a chat only the tail
(`chats.context.tail`) and the blocks that matter (`chats.context.recall`) are read. The form is decided by
`chats.context.composition` and `engine.history.normaliser`. The turn's manifest says what went in, and what
was left out and why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from amber.lib.database.cached_sql import cache_sql
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace
from assistants.bound_tools import bound_tools
from assistants.turn_config import TurnConfig, apply_scene, toolbox_of, turn_config_of
from chats.context.call_options import CallOptions
from chats.context.composition import PromptFormat, compose, render_rows
from chats.context.exposure import mark_of, read_exposure
from chats.context.findings import Budgets, WordFindings, find_words, look_up, volatile_of
from chats.context.knowledge import Knowledge, load_known_passages
from chats.context.lookups import RecallRequest, find_places, plan_lookups, was_searched
from chats.context.manifest import Ingredients, manifest_of
from chats.context.question_embedding import PendingEmbedding, QuestionEmbedding
from chats.context.tail import Tail, read_tail
from chats.models import ChatMessage, Turn
from engine.context.budget import shares
from engine.context.recall import question_alone
from engine.history.normaliser import RenderedHistory
from engine.history.prompt import untrusted_prompt
from engine.messages import MessageRole
from engine.provider.model import Model, ModelProfile, ModelRequest
from engine.text import tokens
from engine.trust import Exposure
from libraries.models import Library
from providers import registry
from providers.models import AUTO_ALIAS, LanguageModel
from providers.registry import ResolvedModel
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits, TurnToolbox
from tools.citable import CitablePassages
from tools.protocol import OfferedTool, ToolContext

RELATED = ("chat", "assistant", "user", "organization", "question")
"""The relations that a turn is loaded with, so that `gather` need not read them."""


@dataclass(frozen=True, slots=True)
class GatheredContext:
    """What a turn knows before anything is looked up."""

    tail: Tail
    turn_config: TurnConfig
    library: Library | None
    wanted: RecallRequest


@dataclass(frozen=True, slots=True)
class RequestLayout:
    """All of a request that does not depend on a vector, and what words have found already."""

    resolved: ResolvedModel
    profile: ModelProfile
    citable: CitablePassages
    toolbox: TurnToolbox
    form: PromptFormat
    words: WordFindings
    history: RenderedHistory | None
    """The tail as the model reads it; None until a library was searched, or files were read, for it."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """All that the runner needs for one request. `manifest` counts tokens: call it while the model
    thinks.

    `knowledge` is what the library's search found, None if it was not searched. `citable` are the
    passages that the turn may cite; its tools add to them. `exposure` is what it has read so far, and
    `mark` stands around what strangers wrote of it.
    """

    row: LanguageModel
    model: Model
    request: ModelRequest
    toolbox: TurnToolbox
    exposure: Exposure
    mark: str
    knowledge: Knowledge | None
    citable: CitablePassages
    manifest: Callable[[], dict[str, Any]]


def load_claimed_turn(turn_id: UUID) -> Turn | None:
    """Return a turn that was just claimed, with all that `gather` and its first event read of it. One
    query."""
    return next(iter(_with_related(turn_id=turn_id)), None)


@cache_sql
def _with_related(*, turn_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.select_related(*RELATED).annotate_question_siblings().filter(pk=turn_id)


@trace(names.GATHER)
def gather(turn: Turn, pending: PendingEmbedding | None = None) -> GatheredContext:
    """Read the tail of the conversation and what could be looked up: 2 to 7 queries.

    `pending` is begun as soon as it is known where the question will be searched for: before the tail is
    read if it is a question by itself.
    """
    turn_config = _turn_config(turn)
    places = find_places(turn, turn_config)
    models = places.embedding_models if pending is not None and not turn.step else []
    alone = question_alone(turn.question.content) if models and turn.question else ""
    if pending is not None and alone:
        pending.begin(alone, models)
    tail = read_tail(turn, places.blocks)
    wanted = plan_lookups(turn, tail, places)
    if pending is not None:
        pending.begin(wanted.question, wanted.embedding_models)
    return GatheredContext(tail, turn_config, places.library, wanted)


def lay_out(turn: Turn, gathered: GatheredContext) -> RequestLayout:
    """Read what does not depend on the question's vector, and render the history: 2 to 6 queries.

    Raises Unavailable (no model) and Invalid (no_human_message).
    """
    tail = gathered.tail
    resolved = registry.resolve(gathered.turn_config.model, wants_vision=tail.has_image)
    profile = registry.profile_of(resolved.row)
    # An attempt may have broken off between its search and its first step.
    citable = CitablePassages(load_known_passages(turn) if turn.step or was_searched(tail) else ())
    bound = _bound_tools(turn)
    with find_words(turn, gathered.wanted) as words:
        toolbox = _toolbox(turn, gathered, profile, citable, bound)
        form = _form(turn, tail, profile, toolbox)
        is_whole = gathered.wanted.library is None and not tail.unread_files
        history = render_rows(tail.messages, form) if is_whole else None
    return RequestLayout(resolved, profile, citable, toolbox, form, words, history)


@trace(names.COMPOSE)
def prepare(
    turn: Turn, gathered: GatheredContext, layout: RequestLayout, embedded: QuestionEmbedding
) -> PreparedRequest:
    """Look up what was wanted and compose the turn's next request: none to 8 queries.

    Raises Invalid (no_human_message) and AmberError (context_too_long).
    """
    tail, turn_config = gathered.tail, gathered.turn_config
    tail.read_files()
    resolved, toolbox, citable = layout.resolved, layout.toolbox, layout.citable
    profile, form = layout.profile, layout.form
    found = look_up(
        turn,
        gathered.wanted,
        layout.words,
        embedded,
        budgets=_budgets(form),
        encoding=form.encoding,
    )
    citable.keep(found.knowledge.passages if found.knowledge else ())
    turn_config = apply_scene(turn_config, found.scene) if found.scene else turn_config
    options = CallOptions.read(turn.options)
    prompts = [*toolbox.prompts, *turn_config.system_prompts, *options.prompts, *tail.opening]
    rows = [*tail.messages, *_as_message(found.knowledge)]
    exposure = read_exposure(turn, rows, found, prompts)
    if form.mark and (toolbox.specs or exposure.is_untrusted):
        prompts.append(untrusted_prompt(form.mark))
    composed = compose(
        rows,
        system_prompts=prompts,
        volatile=volatile_of(found, form),
        form=form,
        history=layout.history,
    )
    about = _about(turn, resolved, embedded)
    used = Ingredients(tail, found, toolbox, prompts, form, composed, exposure, about)
    request = ModelRequest(
        messages=composed.messages,
        tools=tuple(toolbox.specs),
        temperature=turn_config.temperature,
        top_p=turn_config.top_p,
    )
    return PreparedRequest(
        row=resolved.row,
        model=registry.engine_model(resolved.row),
        request=options.apply_to(request, max_output_tokens=profile.max_output_tokens),
        toolbox=toolbox,
        exposure=exposure,
        mark=form.mark,
        knowledge=found.knowledge,
        citable=citable,
        manifest=partial(_manifest, used, embedded),
    )


def _manifest(used: Ingredients, embedded: QuestionEmbedding) -> dict[str, Any]:
    """Return the manifest, with how late the question's vector was, as far as is known when it is written."""
    return {**manifest_of(used), "question_embedded_late_ms": embedded.late_ms}


def _as_message(knowledge: Knowledge | None) -> list[ChatMessage]:
    """Return the message that the knowledge will be stored as, for the request that is sent
    before."""
    if knowledge is None:
        return []
    return [ChatMessage(role=MessageRole.KNOWLEDGE, content=knowledge.content)]


def _about(turn: Turn, resolved: ResolvedModel, embedded: QuestionEmbedding) -> dict[str, Any]:
    return {
        "model": resolved.row.alias,
        "model_fallback": resolved.reason or None,
        "assistant_id": str(turn.assistant_id) if turn.assistant_id else None,
        "question_not_embedded": embedded.problem or None,
    }


def _turn_config(turn: Turn) -> TurnConfig:
    """Return the assistant's configuration, or a bare model's if there is no assistant (any
    more)."""
    if turn.assistant is None:
        return TurnConfig(model=CallOptions.read(turn.options).model or AUTO_ALIAS)
    return turn_config_of(
        turn.assistant,
        organization_prompt=turn.organization.default_prompt,
        chat_prompt=(turn.chat.prompt or "") if turn.chat else "",
        is_public_api=turn.api_key_id is not None or turn.guest_id is not None,
    )


def _form(turn: Turn, tail: Tail, profile: ModelProfile, toolbox: TurnToolbox) -> PromptFormat:
    """Return the format; its limit is what the reply and the tools leave of the model's window."""
    tools_tokens = sum(tokens.at_most_tokens(str(spec)) for spec in toolbox.specs)
    # The bound is a token a byte, several times too much: many tools would leave nothing.
    reserved = profile.max_output_tokens + min(tools_tokens, profile.context_tokens // 4)
    return PromptFormat(
        system_position=profile.system_position,
        vision=profile.vision,
        encoding=profile.encoding,
        time_zone=_time_zone(turn),
        assistant_id=str(turn.assistant_id),
        history_is_cut=tail.is_cut,
        limit_tokens=profile.context_tokens - reserved,
        mark="" if CallOptions.read(turn.options).is_bare else mark_of(turn),
        sender=profile.sender,
        file_tokens=settings.AMBER_FILE_TOKENS,
    )


def _budgets(form: PromptFormat) -> Budgets:
    """Return the budgets of the settings, reduced so that what is found fills at most half of the window."""
    wishes = (
        settings.AMBER_RECALL_TOKENS,
        settings.AMBER_MEMORY_TOKENS,
        settings.AMBER_PASSAGE_TOKENS,
    )
    return Budgets(*shares(wishes, limit_tokens=form.limit_tokens // 2))


def _toolbox(
    turn: Turn,
    gathered: GatheredContext,
    profile: ModelProfile,
    citable: CitablePassages,
    bound: Sequence[OfferedTool],
) -> TurnToolbox:
    context = ToolContext(
        organization_id=turn.organization_id,
        user_id=turn.user_id,
        guest_id=turn.guest_id,
        api_key_id=turn.api_key_id,
        chat_id=turn.chat_id,
        assistant_id=turn.assistant_id,
        turn_id=turn.pk,
        question_id=turn.question_id,
        library_ids=(gathered.library.pk,) if gathered.library else (),
        time_zone=_time_zone(turn),
        citable=citable,
    )
    options = CallOptions.read(turn.options)
    return toolbox_of(
        gathered.turn_config,
        client_tools=options.tools,
        is_bare=options.is_bare,
        is_attended=not options.is_unattended and turn.guest_id is None,
        bound=bound,
        context=context,
        files=ResultFiles(context, vision=profile.vision),
        has_sealed_blocks=gathered.tail.sealed_before > 0,
        limits=ToolLimits(
            timeout_seconds=settings.AMBER_TOOL_TIMEOUT_SECONDS,
            result_tokens=settings.AMBER_TOOL_RESULT_TOKENS,
            count=partial(tokens.count_text, encoding=profile.encoding),
        ),
    )


def _bound_tools(turn: Turn) -> Sequence[OfferedTool]:
    if turn.assistant is None:
        return ()
    return bound_tools(turn.assistant, user_id=turn.group_user_id, in_person=turn.is_in_person)


def _time_zone(turn: Turn) -> str:
    return turn.user.time_zone if turn.user else "UTC"
