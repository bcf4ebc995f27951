"""Closes the calls that an earlier attempt left open, before the model is asked again.

A worker died while they ran, or a person had to decide on them. A call that may have been made is made
again where that does no harm, else reported: its outcome is unknown.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from amber.lib.workers.thread_bridge import RunInThread
from chats.messages.turn_messages import open_calls
from chats.running.writer import TurnWriter
from chats.turns.approval import DECLINED, sort_calls
from engine import loop, loop_events
from engine.messages import ToolCall
from engine.tools import ToolResult
from tools.calling.toolbox import TurnToolbox

UNKNOWN_OUTCOME: Final = (
    "The worker stopped while this call was running. Its outcome is unknown; it was not repeated."
)

Take = Callable[[loop_events.LoopEvent], Awaitable[None]]
"""Tells the viewers and stores."""


async def close_calls(
    writer: TurnWriter, toolbox: TurnToolbox, *, run_in_thread: RunInThread, take: Take
) -> bool:
    """Whether there were any. The turn waits, or is over, if some of them are others' to decide on
    or to make."""
    unfinished = await run_in_thread(lambda: open_calls(writer.turn))
    step = writer.turn.step
    client_tools = tuple(call for call in unfinished if toolbox.is_client_tool(call.name))
    ours = [call for call in unfinished if call not in client_tools]
    undecided = await _finish_calls(writer, ours, toolbox, run_in_thread, take) if ours else ()
    if undecided:
        await take(loop_events.ApprovalNeeded(step, undecided))
    elif client_tools:
        await take(loop_events.ClientCallsReturned(step, client_tools, "tool_calls"))
    return bool(unfinished)


async def _finish_calls(
    writer: TurnWriter,
    calls: Sequence[ToolCall],
    toolbox: TurnToolbox,
    run_in_thread: RunInThread,
    take: Take,
) -> tuple[ToolCall, ...]:
    """Those nobody has decided on; the others have results now."""
    step = writer.turn.step
    sorted_ = sort_calls(calls, writer.turn.waiting_calls)
    repeated = [call for call in sorted_.begun if toolbox.is_safe_to_repeat(call.name)]
    for call in sorted_.declined:
        await take(_not_made(step, call, DECLINED))
        await toolbox.record_declined(call_id=call.id, name=call.name)
    for call in sorted_.begun:
        if call not in repeated:
            await take(_not_made(step, call, UNKNOWN_OUTCOME))
    if sorted_.approved:
        await run_in_thread(lambda: writer.take_approved(sorted_.approved))
    made = [*repeated, *sorted_.approved]
    async with aclosing(loop.run_calls(made, step=step, toolbox=toolbox)) as told:
        async for loop_event in told:
            await take(loop_event)
    return sorted_.undecided


def _not_made(step: int, call: ToolCall, why: str) -> loop_events.CallFinished:
    return loop_events.CallFinished(step, call, ToolResult(call_id=call.id, ok=False, content=why))
