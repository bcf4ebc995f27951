"""Make a test call: one function with given arguments, outside of any turn, with its exchanges.

It goes the way of every call (`tools.calling.recorded`) and is logged as a test. The result is not
kept: whoever asked reads it.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from accounts.principal import Principal
from amber.lib.database.connections import release_connections
from amber.lib.errors import Invalid
from amber.lib.ids import new_id
from tools.calling.recorded import limit_of
from tools.connections.connected import functions_of
from tools.connections.places import place_for
from tools.models import Tool
from tools.protocol import Exchange, OfferedTool, ProducedFile, ToolContext, ToolError, ToolOutput

MAX_CONTENT_CHARS: Final = 200_000
MAX_KNOWN_NAMES: Final = 50


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a test call.

    `content` is what a model would read, uncut; `detail` is more, for the tool's owner.
    """

    ok: bool
    content: str
    detail: str
    files: Sequence[ProducedFile]
    exchanges: Sequence[Exchange]
    latency_ms: int


def try_function(
    tool: Tool, principal: Principal, *, function: str, arguments: Mapping[str, Any]
) -> Trial:
    """Call the function now. Blocks, at most as long as a call may take.

    Raises Invalid for a function that the tool does not have, Unavailable for a key that cannot be
    read, RateLimited or Unavailable if there is no place (`tools.connections.places`).
    """
    chosen = _function(tool, function)
    exchanges: list[Exchange] = []
    context = ToolContext(
        organization_id=tool.organization_id,
        user_id=principal.user_id,
        call_id=f"test-{new_id()}",
        time_zone=principal.user.time_zone if principal.user else "UTC",
        exchanges=exchanges,
    )
    release_connections()
    started = time.monotonic()
    with place_for(tool.organization_id):
        outcome = asyncio.run(_outcome(chosen, arguments, context))
    latency_ms = round((time.monotonic() - started) * 1_000)
    if isinstance(outcome, ToolOutput):
        content, detail, files = outcome.text, "", outcome.files
    else:
        content, files = str(outcome), ()
        detail = str(getattr(outcome, "detail", ""))
    return Trial(
        ok=isinstance(outcome, ToolOutput),
        content=content[:MAX_CONTENT_CHARS],
        detail=detail if detail != content else "",
        files=files,
        exchanges=exchanges,
        latency_ms=latency_ms,
    )


def _function(tool: Tool, name: str) -> OfferedTool:
    """Return the tool's function of this name. Raises Invalid, Unavailable."""
    functions = functions_of(tool)
    for each in functions:
        if each.spec.name == name:
            return each
    known = ", ".join(each.spec.name for each in functions[:MAX_KNOWN_NAMES])
    text = f"The tool has no function {name!r}. Its functions are: {known or 'none'}."
    raise Invalid(text, fields={"function": [text]})


async def _outcome(
    function: OfferedTool, arguments: Mapping[str, Any], context: ToolContext
) -> ToolOutput | ToolError:
    limit_seconds = limit_of(function)
    try:
        async with asyncio.timeout(limit_seconds):
            return await function.call(arguments, context)
    except ToolError as error:
        return error
    except TimeoutError:
        return ToolError(f"{function.spec.name} did not answer within {limit_seconds:g} seconds.")
