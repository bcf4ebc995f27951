"""Define what clients may do with each role, and what Amber does with what they said, as a table.

Who speaks, and how a model is shown it, is in the engine's table (`engine.messages.ROLES`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.messages import MessageRole

CALL_ROLES: Final = frozenset({MessageRole.TOOL_CALL, MessageRole.TOOL})


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """What becomes of a role's messages.

    `is_posted`: clients may post it; then `starts_turn`, whether it may be posted `while_live`,
    while a turn runs, and `needs_content`. `is_hidden` from the page; `is_searched` by words;
    `is_learnt`: memories may rest on it, as what the person typed.
    """

    is_posted: bool = True
    starts_turn: bool = False
    while_live: bool = False
    needs_content: bool = True
    is_hidden: bool = False
    is_searched: bool = False
    is_learnt: bool = False


POLICIES: Final[Mapping[str, RolePolicy]] = {
    MessageRole.HUMAN: RolePolicy(starts_turn=True, is_searched=True, is_learnt=True),
    MessageRole.HIDE_HUMAN: RolePolicy(starts_turn=True, is_hidden=True, is_searched=True),
    MessageRole.HUMAN_LATER: RolePolicy(while_live=True, is_searched=True, is_learnt=True),
    MessageRole.SYSTEM: RolePolicy(while_live=True),
    MessageRole.HIDE_SYSTEM: RolePolicy(while_live=True, is_hidden=True),
    MessageRole.ASSISTANT: RolePolicy(is_searched=True),
    MessageRole.FILE: RolePolicy(while_live=True, needs_content=False),
    MessageRole.TOOL_CALL: RolePolicy(is_posted=False),
    MessageRole.TOOL: RolePolicy(is_posted=False),
    MessageRole.KNOWLEDGE: RolePolicy(is_posted=False),
}

POSTED_ROLES: Final = {role: policy for role, policy in POLICIES.items() if policy.is_posted}
LEARNT_ROLES: Final = frozenset(role for role, policy in POLICIES.items() if policy.is_learnt)
