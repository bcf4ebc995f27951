"""Define what the roles of messages mean, and what clients may do with them, as tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from chats.models import MessageRole

HIDDEN_ROLES = frozenset({MessageRole.HIDE_HUMAN, MessageRole.HIDE_SYSTEM})
SYSTEM_ROLES = frozenset({MessageRole.SYSTEM, MessageRole.HIDE_SYSTEM})
ASKING_ROLES = frozenset({MessageRole.HUMAN, MessageRole.HIDE_HUMAN})
CALL_ROLES = frozenset({MessageRole.TOOL_CALL, MessageRole.TOOL})
SEARCHED_ROLES = frozenset(
    {MessageRole.HUMAN, MessageRole.HUMAN_LATER, MessageRole.HIDE_HUMAN, MessageRole.ASSISTANT}
)


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """What a client may do with a role.

    `while_live`: it may be posted while a turn runs.
    """

    starts_turn: bool = False
    while_live: bool = False
    needs_content: bool = True


POSTED_ROLES: Mapping[str, RolePolicy] = {
    MessageRole.HUMAN: RolePolicy(starts_turn=True),
    MessageRole.HIDE_HUMAN: RolePolicy(starts_turn=True),
    MessageRole.HUMAN_LATER: RolePolicy(while_live=True),
    MessageRole.SYSTEM: RolePolicy(while_live=True),
    MessageRole.HIDE_SYSTEM: RolePolicy(while_live=True),
    MessageRole.ASSISTANT: RolePolicy(),
    MessageRole.FILE: RolePolicy(while_live=True, needs_content=False),
}
