"""Register typed functions as built-in tools, and offer them by a turn's circumstances.

Apps that build on this one register their tools when they start (`AppConfig.ready`); this app
never imports them. Two tools of one name are refused.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from amber.lib.database.connections import in_thread
from engine.tools import ToolSpec
from tools.calling.signature import Signature, read_signature
from tools.protocol import Circumstances, OfferedTool, ToolContext, ToolOutput

Function = TypeVar("Function", bound=Callable[..., Any])
Condition = Callable[[Circumstances], bool]

_tools: "dict[str, BuiltinTool]" = {}


def _always(_: Circumstances) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class BuiltinTool(OfferedTool):
    """A registered function."""

    function: Callable[..., Any]
    signature: Signature
    is_offered_in: Condition
    prompt: str = ""
    has_own_words: bool = False
    names_addresses: bool = False

    @property
    def name(self) -> str:
        return self.spec.name

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call the function; a plain one runs in a thread, and its connections are closed after."""
        bound = self.signature.bind(arguments, context)
        if inspect.iscoroutinefunction(self.function):
            returned = await self.function(**bound)
        else:
            returned = await in_thread(self.function, **bound)
        return returned if isinstance(returned, ToolOutput) else ToolOutput(str(returned))


@overload
def register_tool(function: Function) -> Function: ...


@overload
def register_tool(
    *,
    when: Condition = ...,
    idempotent: bool = ...,
    asks_first: bool = ...,
    timeout_seconds: float | None = ...,
    prompt: str = ...,
    harmless: bool = ...,
    own_words: bool = ...,
    names_addresses: bool = ...,
) -> Callable[[Function], Function]: ...


def register_tool(
    function: Function | None = None,
    *,
    when: Condition = _always,
    idempotent: bool = False,
    asks_first: bool = False,
    timeout_seconds: float | None = None,
    prompt: str = "",
    harmless: bool = False,
    own_words: bool = False,
    names_addresses: bool = False,
) -> Function | Callable[[Function], Function]:
    """Register a function as a tool: a decorator, with or without arguments.

    `tools.calling.signature` says how the function is read. `when` decides by the turn's
    circumstances whether it is offered; `idempotent` says that calling twice does no harm,
    `asks_first` that a person must approve each call; `prompt` opens the system prompt of every
    turn that is offered the tool. `harmless` says that a stranger who gets it called gains nothing, or
    that the tool sees to that itself; calls of other tools are guarded (`tools.calling.guard`).
    `own_words` says that its results hold nothing that a stranger wrote, `names_addresses` that addresses
    in them may be opened (`tools.builtin.web.addresses`), for which its name is reserved.

    The function may be async. It returns what the model reads, or a ToolOutput, and raises ToolError for
    what went wrong. Raises TypeError for a function that does not describe itself, ValueError for a name
    that is taken.
    """

    def register(registered: Function) -> Function:
        signature = read_signature(registered)
        tool = BuiltinTool(
            function=registered,
            signature=signature,
            spec=signature.spec,
            is_offered_in=when,
            is_idempotent=idempotent,
            timeout_seconds=timeout_seconds,
            prompt=prompt,
            asks_first=asks_first,
            is_harmless=harmless,
            has_own_words=own_words,
            names_addresses=names_addresses,
        )
        if tool.name in _tools:
            raise ValueError(f"There is already a built-in tool named {tool.name}.")
        _tools[tool.name] = tool
        return registered

    return register if function is None else register(function)


def offer_builtin_tools(
    circumstances: Circumstances, *, disabled: Collection[str] = ()
) -> list[BuiltinTool]:
    """Return the tools to offer, without the `disabled` names, in the order of their names.

    A stable order keeps prompts cacheable.
    """
    return [
        tool
        for name, tool in sorted(_tools.items())
        if name not in disabled and tool.is_offered_in(circumstances)
    ]


def own_words_names() -> frozenset[str]:
    """Return the names of the tools whose results are Amber's own words."""
    return frozenset(name for name, tool in _tools.items() if tool.has_own_words)


def reserved_names() -> frozenset[str]:
    """Return the names by which results are trusted, wholly or in part: no other tool has them."""
    trusting = {name for name, tool in _tools.items() if tool.names_addresses}
    return own_words_names() | trusting


def builtin_names() -> list[str]:
    """Return the names of all registered tools, offered or not, in order."""
    return sorted(_tools)


def builtin_specs() -> list[ToolSpec]:
    """Return what models are told of all registered tools, offered or not, by name."""
    return [_tools[name].spec for name in builtin_names()]
