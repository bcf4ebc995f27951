"""What rooms above lend to this one. Imports go downwards only, so they hand it in at start.

An API key can be limited to an assistant. Only `assistants` knows which assistants a principal
sees; until it has said so, none is.
"""

from collections.abc import Callable
from uuid import UUID

from accounts.principal import Principal

AssistantCheck = Callable[[Principal, UUID], bool]


def _sees_none(principal: Principal, assistant_id: UUID) -> bool:
    return False


_sees_assistant: AssistantCheck = _sees_none


def register_assistant_check(check: AssistantCheck) -> None:
    """`check` says whether the principal sees that assistant; a later one replaces it."""
    global _sees_assistant
    _sees_assistant = check


def sees_assistant(principal: Principal, assistant_id: UUID) -> bool:
    return _sees_assistant(principal, assistant_id)
