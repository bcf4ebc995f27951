"""Keep the entries of `Turn.waiting_calls`: calls that wait for a person, and the decisions.

An entry is {call_id, name, arguments, approved}; `approved` is null until somebody decides. It is
written with the call itself and cleared before the call is made: so a call that has an entry was
never made, and one that lost it may have been. Pure; `chats.approval_services` writes the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.tool_calls import ToolCall, item_form

DECLINED: Final = (
    "The person you are talking to declined this call; it was not made. Do not ask for it again "
    "unless they want it."
)

WaitingCalls = Sequence[Mapping[str, Any]]


def waiting_call(call: ToolCall) -> dict[str, Any]:
    return {**item_form(call), "approved": None}


def without_call(entries: WaitingCalls, call_id: str) -> list[dict[str, Any]]:
    return [dict(entry) for entry in entries if entry["call_id"] != call_id]


def apply_decisions(entries: WaitingCalls, decisions: Mapping[str, bool]) -> list[dict[str, Any]]:
    """Return the entries with these decisions, which are about known calls."""
    return [
        {**entry, "approved": decisions.get(entry["call_id"], entry["approved"])}
        for entry in entries
    ]


def is_decided(entries: WaitingCalls) -> bool:
    return all(entry["approved"] is not None for entry in entries)


@dataclass(frozen=True, slots=True)
class SortedCalls:
    """Calls without a result, by what may be done with them, each in the order of the reply.

    `begun` have no entry: they needed none, or it was cleared. They may have been made.
    """

    begun: tuple[ToolCall, ...]
    approved: tuple[ToolCall, ...]
    declined: tuple[ToolCall, ...]
    undecided: tuple[ToolCall, ...]


def sort_calls(calls: Sequence[ToolCall], entries: WaitingCalls) -> SortedCalls:
    """Sort calls without a result by the entries of `Turn.waiting_calls`."""
    decisions = {entry["call_id"]: entry["approved"] for entry in entries}

    def those(decision: bool | None) -> tuple[ToolCall, ...]:
        # `is`: an undecided call has None, which is not False.
        return tuple(c for c in calls if c.id in decisions and decisions[c.id] is decision)

    begun = tuple(call for call in calls if call.id not in decisions)
    return SortedCalls(begun, those(True), those(False), those(None))
