"""Make a turn's configuration of an assistant's row: prompts, model, sampling and tools.

Reads the row and what is already loaded with it, without any query. Who may use the assistant was
decided before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings

from assistants.models import Assistant, ScenePrompt
from engine.messages import Author
from engine.tools import ToolSpec
from providers.models import AUTO_ALIAS
from tools.calling.registry import offer_builtin_tools
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits, TurnToolbox
from tools.protocol import Circumstances, OfferedTool, ToolContext, UntrustedCalls

MIN_TEMPERATURE = 0.1
MAX_TEMPERATURE = 1.0
"""An assistant's temperature is clamped to these when it is sent; some servers refuse 0."""


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """What a turn takes from its assistant. For a bare model, `author` is None and all is default.

    `system_prompts` are in order, without empty ones; a scene's prompt comes last.
    """

    author: Author | None = None
    model: str = AUTO_ALIAS
    system_prompts: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    library_id: UUID | None = None
    uses_memory: bool = False
    disable_web_browsing: bool = False
    disabled_builtin_tools: frozenset[str] = frozenset()
    untrusted_calls: UntrustedCalls = UntrustedCalls.ASK


def turn_config_of(
    assistant: Assistant,
    *,
    organization_prompt: str = "",
    chat_prompt: str = "",
    is_public_api: bool = False,
) -> TurnConfig:
    """Make the configuration of a turn with this assistant.

    `organization_prompt` is the organization's default prompt; `chat_prompt` replaces the
    assistant's. In the public API memory is off unless the assistant enables it there.
    """
    defaults = (settings.AMBER_DEFAULT_PROMPT, organization_prompt)
    prompts = [
        *(() if assistant.disable_default_prompt else defaults),
        chat_prompt if chat_prompt.strip() else assistant.prompt,
    ]
    uses_memory = not assistant.disable_memory
    if is_public_api:
        uses_memory = uses_memory and assistant.enable_memory_for_assistant_api
    return TurnConfig(
        author=Author(str(assistant.pk), assistant.name, assistant.description),
        model=assistant.model or AUTO_ALIAS,
        system_prompts=tuple(prompt for prompt in prompts if prompt.strip()),
        temperature=clamp_temperature(assistant.temperature),
        top_p=assistant.top_p,
        library_id=assistant.library_id,
        uses_memory=uses_memory,
        disable_web_browsing=assistant.disable_web_browsing,
        disabled_builtin_tools=frozenset(assistant.disabled_builtin_tools),
        untrusted_calls=UntrustedCalls(assistant.untrusted_calls),
    )


def apply_scene(turn_config: TurnConfig, scene: ScenePrompt) -> TurnConfig:
    """Return the configuration with the scene's prompt appended and the scene's sampling."""
    temperature = clamp_temperature(scene.temperature)
    prompts = (scene.prompt,) if scene.prompt.strip() else ()
    return replace(
        turn_config,
        system_prompts=turn_config.system_prompts + prompts,
        temperature=turn_config.temperature if temperature is None else temperature,
        top_p=turn_config.top_p if scene.top_p is None else scene.top_p,
    )


def clamp_temperature(temperature: float | None) -> float | None:
    """Return the temperature to send; None leaves it to the provider."""
    if temperature is None:
        return None
    return min(max(temperature, MIN_TEMPERATURE), MAX_TEMPERATURE)


def toolbox_of(
    turn_config: TurnConfig,
    *,
    context: ToolContext,
    limits: ToolLimits,
    files: ResultFiles,
    has_sealed_blocks: bool = False,
    bound: Sequence[OfferedTool] = (),
    client_tools: Sequence[ToolSpec] = (),
    is_bare: bool = False,
    is_attended: bool = True,
) -> TurnToolbox:
    """Return all tools that a turn of this configuration may use, in a stable order.

    Built-in tools come first (none if `is_bare`), then `bound`, then `client_tools`, which the
    caller runs.
    """
    circumstances = Circumstances(
        has_library=bool(context.library_ids),
        has_sealed_blocks=has_sealed_blocks,
        disable_web_browsing=turn_config.disable_web_browsing,
        disable_memory=not turn_config.uses_memory,
    )
    disabled = turn_config.disabled_builtin_tools
    builtin = () if is_bare else offer_builtin_tools(circumstances, disabled=disabled)
    return TurnToolbox(
        [*builtin, *bound],
        context=replace(context, untrusted_calls=turn_config.untrusted_calls),
        limits=limits,
        files=files,
        client_tools=client_tools,
        is_attended=is_attended,
    )
