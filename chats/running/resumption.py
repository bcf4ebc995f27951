"""Close the calls that an earlier attempt left open, before the model is asked again.

A worker died while they ran, or a person had to decide on them. A call that may have been made is
repeated only if that does no harm; else the model is told that its outcome is unknown.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from amber.lib.workers.thread_bridge import RunInThread
from chats.context.gathering import PreparedRequest
from chats.messages.turn_messages import open_calls
from chats.running.writer import TurnWriter
from chats.turns.approval import DECLINED, sort_calls
from engine import loop, loop_events
from engine.tool_calls import ToolCall
from engine.tools import ToolResult

UNKNOWN_OUTCOME: Final = (
    "The worker stopped while this call was running. Its outcome is unknown; it was not repeated."
)

EventHandler = Callable[[loop_events.LoopEvent], Awaitable[None]]
"""Tells the viewers of a loop event, and stores it."""


async def close_calls(
    writer: TurnWriter,
    prepared: PreparedRequest,
    *,
    run_in_thread: RunInThread,
    handle: EventHandler,
) -> bool:
    """Close the open calls; return whether there were any.

    Afterwards the turn waits if a person must decide on some of them, or is over if the client must
    make some of them.
    """
    unfinished = await run_in_thread(lambda: open_calls(writer.turn))
    step = writer.turn.step
    toolbox = prepared.toolbox
    client_calls = tuple(call for call in unfinished if toolbox.is_client_tool(call.name))
    own = [call for call in unfinished if call not in client_calls]
    undecided = await _finish_calls(writer, own, prepared, run_in_thread, handle) if own else ()
    # A person first: calls are handed to the client by ending the turn, and then nobody can decide.
    if undecided:
        await handle(loop_events.ApprovalNeeded(step, undecided))
    elif client_calls:
        await handle(loop_events.ClientCallsReturned(step, client_calls, "tool_calls"))
    return bool(unfinished)


async def _finish_calls(
    writer: TurnWriter,
    calls: Sequence[ToolCall],
    prepared: PreparedRequest,
    run_in_thread: RunInThread,
    handle: EventHandler,
) -> tuple[ToolCall, ...]:
    """Give the calls results, except those that nobody has decided on, which are returned."""
    step, toolbox = writer.turn.step, prepared.toolbox
    sorted_ = sort_calls(calls, writer.turn.waiting_calls)
    repeated = [call for call in sorted_.begun if toolbox.is_safe_to_repeat(call.name)]
    for call in sorted_.declined:
        await handle(_not_made(step, call, DECLINED))
        await toolbox.record_declined(call_id=call.id, name=call.name)
    for call in sorted_.begun:
        if call not in repeated:
            await handle(_not_made(step, call, UNKNOWN_OUTCOME))
    if sorted_.approved:
        # As late as can be: if the worker dies from here on, nobody knows whether these were made.
        await run_in_thread(lambda: writer.take_approved(sorted_.approved))
    made = [*repeated, *sorted_.approved]
    new_calls = loop.run_calls(made, prepared.exposure, step=step, toolbox=toolbox)
    async with aclosing(new_calls) as new_events:
        async for loop_event in new_events:
            await handle(loop_event)
    return sorted_.undecided


def _not_made(step: int, call: ToolCall, why: str) -> loop_events.CallFinished:
    return loop_events.CallFinished(step, call, ToolResult(call_id=call.id, ok=False, content=why))
