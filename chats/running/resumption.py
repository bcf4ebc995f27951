"""Closes the calls that an earlier attempt left open, before the model is asked again.

A worker died while they ran, or a person had to decide on them. A call that may have been made is made
again where that does no harm, else reported: its outcome is unknown.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from amber.lib.workers.thread_bridge import Hand
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

Take = Callable[[loop_events.Happening], Awaitable[None]]
"""Tells the viewers and stores."""


async def close_calls(writer: TurnWriter, toolbox: TurnToolbox, *, hand: Hand, take: Take) -> bool:
    """Whether there were any. The turn waits, or is over, if some of them are others' to decide on
    or to make."""
    unfinished = await hand(lambda: open_calls(writer.turn))
    step = writer.turn.step
    theirs = tuple(call for call in unfinished if toolbox.is_handed_back(call.name))
    ours = [call for call in unfinished if call not in theirs]
    undecided = await _finished(writer, ours, toolbox, hand, take) if ours else ()
    if undecided:
        await take(loop_events.Waiting(step, undecided))
    elif theirs:
        await take(loop_events.HandedBack(step, theirs, "tool_calls"))
    return bool(unfinished)


async def _finished(
    writer: TurnWriter, calls: Sequence[ToolCall], toolbox: TurnToolbox, hand: Hand, take: Take
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
        await hand(lambda: writer.take_approved(sorted_.approved))
    made = [*repeated, *sorted_.approved]
    async with aclosing(loop.run_calls(made, step=step, toolbox=toolbox)) as told:
        async for happening in told:
            await take(happening)
    return sorted_.undecided


def _not_made(step: int, call: ToolCall, why: str) -> loop_events.CallFinished:
    return loop_events.CallFinished(step, call, ToolResult(call_id=call.id, ok=False, content=why))
