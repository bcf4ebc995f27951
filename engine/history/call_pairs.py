"""Bring every tool call of a history together with its result.

Providers refuse a history in which a call is not followed at once by its result, or a result
has no call (https://platform.openai.com/docs/guides/function-calling). Stored rows may be
torn, interleaved or carry reused ids; this repairs their order and invents nothing but the
failure of a call that has no result.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

from engine.history.prompt import TOOL_FAILED
from engine.messages import Message
from engine.tool_calls import ToolCall

_WaitingResults = dict[str, deque[tuple[int, Message]]]


def pair_calls(messages: Sequence[Message]) -> list[Message]:
    """Put each reply's calls where its first call stands, with the results right behind them.

    Results stand in call order, exactly one per call. A result serves the earliest call before
    it that has its id and none yet; those left over are dropped.
    """
    replies = _calls_by_reply(messages)
    results = _results_by_id(messages)
    paired: list[Message] = []
    for position, message in enumerate(messages):
        if message.role not in ("tool_call", "tool"):
            paired.append(message)
        elif message.role == "tool_call" and message.tool_call is not None:
            rows = replies.pop(_reply_key(message.tool_call, position), [])
            paired += rows
            calls = [row.tool_call for row in rows if row.tool_call is not None]
            paired += [_take_result(call, position, results) for call in calls]
    return paired


def _calls_by_reply(messages: Sequence[Message]) -> dict[str | int, list[Message]]:
    replies: dict[str | int, list[Message]] = {}
    for position, message in enumerate(messages):
        if message.role == "tool_call" and message.tool_call is not None:
            replies.setdefault(_reply_key(message.tool_call, position), []).append(message)
    return replies


def _reply_key(call: ToolCall, position: int) -> str | int:
    """Return the reply a call belongs to; a call without one is a reply of its own."""
    return call.reply_id or position


def _results_by_id(messages: Sequence[Message]) -> _WaitingResults:
    results: _WaitingResults = defaultdict(deque)
    for position, message in enumerate(messages):
        if message.role == "tool" and message.tool_call is not None:
            results[message.tool_call.id].append((position, message))
    return results


def _take_result(call: ToolCall, position: int, results: _WaitingResults) -> Message:
    waiting = results[call.id]
    while waiting:
        found_at, result = waiting.popleft()
        if found_at > position:
            return result
    return Message("tool", TOOL_FAILED, tool_call=ToolCall(call.id, call.name, ""))
