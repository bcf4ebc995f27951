"""Offer the tools of one turn to the engine (`engine.tools.Toolbox`).

Gives every function a name that models accept, runs calls within their time limit and cuts what
they return; their files go to `tools.calling.result_files`. Whatever goes wrong becomes a short
text for the model and a log entry with the reason for the owner: a tool never ends a turn.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from amber.lib.tracing import names, spans
from engine.context.budget import cut_text
from engine.text.tokens import at_most_tokens
from engine.tool_calls import ToolCall
from engine.tools import MAX_OFFERED_TOOLS, ToolResult, ToolSpec
from engine.trust import Exposure
from tools.calling.arguments import parse_arguments
from tools.calling.guard import is_guarded
from tools.calling.recorded import RecordedTool
from tools.calling.registry import BuiltinTool, reserved_names
from tools.calling.result_files import ResultFiles
from tools.protocol import OfferedTool, ToolContext, ToolError, ToolOutput, UntrustedCalls

logger = structlog.get_logger(__name__)

MAX_NAME_CHARS = 64
"""The most that OpenAI allows (https://platform.openai.com/docs/api-reference/chat/create)."""

NOTHING_RETURNED = "(The call returned nothing.)"
"""Stands for an empty result, which some servers refuse."""

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The limits of a call. `count` counts a text's tokens; it may be slow and runs in a thread."""

    timeout_seconds: float
    result_tokens: int
    count: Callable[[str], int]


class TurnToolbox:
    """Offers `tools` in their order; `left_out` names those beyond the maximum.

    `client_tools` are run by the caller: they keep their names, and one of them replaces an own
    tool of the same name. Without `is_attended` nobody can approve calls.
    """

    def __init__(
        self,
        tools: Sequence[OfferedTool],
        *,
        context: ToolContext,
        limits: ToolLimits,
        files: ResultFiles,
        client_tools: Sequence[ToolSpec] = (),
        is_attended: bool = True,
    ) -> None:
        self._client_tools = frozenset(spec.name for spec in client_tools)
        named = dict(zip(make_offered_names(tools), tools, strict=True))
        own_names = [name for name in named if name not in self._client_tools]
        most = max(MAX_OFFERED_TOOLS - len(client_tools), 0)
        self.left_out: tuple[str, ...] = tuple(own_names[most:])
        self._tools = {name: named[name] for name in own_names[:most]}
        own_specs = (replace(tool.spec, name=name) for name, tool in self._tools.items())
        self._specs = (*own_specs, *client_tools)
        self._is_attended = is_attended and context.chat_id is not None
        self._context = context
        self._limits = limits
        self.files = files

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return self._specs

    @property
    def prompts(self) -> Sequence[str]:
        """Return what the offered built-in tools put at the head of the system prompt."""
        builtin = (tool for tool in self._tools.values() if isinstance(tool, BuiltinTool))
        return tuple(tool.prompt for tool in builtin if tool.prompt)

    def is_safe_to_repeat(self, name: str) -> bool:
        return name in self._tools and self._tools[name].is_idempotent

    def asks_first(self, call: ToolCall, exposure: Exposure) -> bool:
        """Whether a person is asked. If nobody can approve, such a call is refused at once."""
        tool = self._tools.get(call.name)
        if tool is None or not self._is_attended:
            return False
        may_ask = self._context.untrusted_calls == UntrustedCalls.ASK
        return tool.asks_first or (may_ask and self._is_guarded(tool, call, exposure))

    def is_client_tool(self, name: str) -> bool:
        return name in self._client_tools

    async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
        """Make the call and return its result, which says what went wrong.

        Of calls that ask first only those may come that a person approved. Raises CancelledError for
        a cancelled call and nothing else.
        """
        call_id, name = call.id, call.name
        failed = partial(ToolResult, call_id=call_id, ok=False)
        tool = self._tools.get(name)
        if tool is None:
            return failed(content=f"There is no tool named {name}.{self._known_names()}")
        if tool.asks_first and not self._is_attended:
            return failed(content=_refuse_unattended(name))
        if not self._may_guarded_be_approved and self._is_guarded(tool, call, exposure):
            return failed(content=_refuse_untrusted(name))
        about = _about(tool, call)
        with spans.span(names.EXECUTE_TOOL.format(tool=name), about) as span:
            result = await self._run(tool, call, exposure)
            _describe(span, result)
            return result

    async def _run(self, tool: OfferedTool, call: ToolCall, exposure: Exposure) -> ToolResult:
        """Run a call that may be made, within its time."""
        call_id, name = call.id, call.name
        failed = partial(ToolResult, call_id=call_id, ok=False)
        log = logger.bind(tool=name, call_id=call_id, turn_id=str(self._context.turn_id))
        timeout_seconds = min(tool.timeout_seconds or math.inf, self._limits.timeout_seconds)
        deadline = asyncio.timeout(timeout_seconds)
        try:
            async with deadline:
                context = replace(self._context, call_id=call_id, exposure=exposure)
                output = await tool.call(parse_arguments(call.arguments), context)
            return await self._result(call_id, name, output)
        except ToolError as error:
            log.info("tool_refused", reason=type(error).__name__)
            return failed(content=await self._cut(_make_storable(str(error))))
        except Exception:  # the boundary: a tool's fault is a result, not the end of a turn
            if deadline.expired():
                log.warning("tool_timeout", timeout_seconds=timeout_seconds)
                return failed(content=f"{name} did not answer within {timeout_seconds:g} seconds.")
            log.exception("tool_failed")
            return failed(content=f"{name} failed. The reason was logged for its owner.")

    @property
    def _may_guarded_be_approved(self) -> bool:
        return self._is_attended and self._context.untrusted_calls == UntrustedCalls.ASK

    def _is_guarded(self, tool: OfferedTool, call: ToolCall, exposure: Exposure) -> bool:
        if not exposure.is_untrusted:
            return False
        context = replace(self._context, exposure=exposure)
        tool_id = tool.tool_id if isinstance(tool, RecordedTool) else None
        same = (
            name
            for name, each in self._tools.items()
            if isinstance(each, RecordedTool) and each.tool_id == tool_id
        )
        return is_guarded(tool, call.arguments, context, same_source=frozenset(same))

    async def record_declined(self, *, call_id: str, name: str) -> None:
        """Log a call that a person declined, where the calls of its tool are logged."""
        tool = self._tools.get(name)
        if isinstance(tool, RecordedTool):
            await tool.record_declined(replace(self._context, call_id=call_id))

    async def _result(self, call_id: str, name: str, output: ToolOutput) -> ToolResult:
        text = _make_storable(output.text)
        content = await self._cut(text)
        brought = await self.files.take(
            output.files, whole=None if content is text else (name, text)
        )
        lines = [content, *brought.notes] if content.strip() else brought.notes
        return ToolResult(
            call_id=call_id,
            ok=True,
            content="\n".join(lines) or NOTHING_RETURNED,
            kept=brought.document,
            produced=brought.shown,
            passages=output.passages,
        )

    def _known_names(self) -> str:
        return f" There are: {', '.join(self._tools)}." if self._tools else ""

    async def _cut(self, text: str) -> str:
        limit_tokens = self._limits.result_tokens
        if at_most_tokens(text) <= limit_tokens:
            return text
        cut = partial(cut_text, text, limit_tokens=limit_tokens, count=self._limits.count)
        return await asyncio.to_thread(cut)


def make_offered_names(tools: Sequence[OfferedTool]) -> list[str]:
    """Return unique names for the model, in the order of `tools`.

    Functions that would share a name become `<tool>__<function>`; built-in tools are not renamed. Nor
    does a function get the name of a built-in tool whose results are trusted, offered or not.
    """
    plain = [allowed_name(tool.spec.name) for tool in tools]
    shared = {name for name, times in Counter(plain).items() if times > 1}
    reserved = reserved_names()
    shared |= reserved
    names: list[str] = []
    taken = (set(plain) - shared) | reserved
    for tool, name in zip(tools, plain, strict=True):
        if name in shared and not isinstance(tool, BuiltinTool):
            name = _make_unique(_qualify_name(tool.source, name), taken)
            taken.add(name)
        names.append(name)
    return names


def allowed_name(text: str) -> str:
    """Replace characters that models do not accept in a tool's name with `_`, and cut it."""
    return _NOT_ALLOWED.sub("_", text)[:MAX_NAME_CHARS] or "tool"


def _qualify_name(source: str, name: str) -> str:
    """Put the tool's name before the function's; only the tool's is cut."""
    left_chars = MAX_NAME_CHARS - len(name) - 2
    if not source or left_chars < 1:
        return name
    return f"{allowed_name(source)[:left_chars]}__{name}"


def _make_unique(name: str, taken: set[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME_CHARS - len(str(number)) - 1]}_{number}"
    return free


def _about(tool: OfferedTool, call: ToolCall) -> spans.Attributes:
    is_shown = spans.may_show_content()
    return {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: call.name,
        names.TOOL_CALL_ID: call.id,
        names.TOOL_TYPE: "function" if isinstance(tool, BuiltinTool) else "extension",
        names.TOOL_ARGUMENTS: spans.cut_text(call.arguments) if is_shown else None,
    }


def _describe(span: spans.TraceSpan, result: ToolResult) -> None:
    if not result.ok:
        span.set({names.ERROR_TYPE: "tool_failed"})
    if spans.may_show_content():
        span.set({names.TOOL_RESULT: spans.cut_text(result.content)})


def _refuse_unattended(name: str) -> str:
    return (
        f"{name} was not called: a person must approve each call, and in this conversation nobody "
        "can. Say so, and go on without it."
    )


def _refuse_untrusted(name: str) -> str:
    return (
        f"{name} was not called: this conversation holds text that neither the user nor the "
        "assistant's owner wrote, and such calls are not made on its account. Say so, and go on "
        "without it."
    )


def _make_storable(text: str) -> str:
    """Remove NUL and lone surrogates, which Postgres refuses; a text without them is not copied."""
    text = text.replace("\0", "")
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
