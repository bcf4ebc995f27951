"""What rooms above lend to this one. Imports go downwards only, so they hand it in at start.

An API key can be limited to an assistant, and a guest always is. Only `assistants` knows which
assistants a principal sees and which take guests; until it has said so, none is. Only `chats` knows
all that an organization has.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from accounts.principal import Principal


@dataclass(frozen=True, slots=True)
class PublicAssistant:
    """What authentication must know of an assistant that takes guests.

    Tokens of another `guest_epoch` are worth nothing. `origins` are the web pages that may use it;
    none: all may.
    """

    id: UUID
    organization_id: UUID
    guest_epoch: int
    origins: tuple[str, ...] = ()

    def may_be_used_from(self, origin: str | None) -> bool:
        """Browsers always say where a page that calls is from; servers never do, and need not."""
        return not self.origins or origin is None or origin in self.origins


AssistantLibraries = Callable[[Principal], Collection[UUID]]
AssistantCheck = Callable[[Principal, UUID], bool]
OrganizationCloser = Callable[[UUID], None]
PublicAssistants = Callable[[Collection[UUID]], Mapping[UUID, PublicAssistant]]


def _sees_none(principal: Principal, assistant_id: UUID) -> bool:
    return False


def _knows_no_library(principal: Principal) -> Collection[UUID]:
    return ()


def _none_is_public(assistant_ids: Collection[UUID]) -> Mapping[UUID, PublicAssistant]:
    return {}


def _has_nothing(organization_id: UUID) -> None:
    """There is no room above that keeps anything."""


_sees_assistant: AssistantCheck = _sees_none
_assistant_libraries: AssistantLibraries = _knows_no_library
_hide_organization: OrganizationCloser = _has_nothing
_public_assistants: PublicAssistants = _none_is_public


def register_assistant_check(check: AssistantCheck) -> None:
    """`check` says whether the principal sees that assistant; a later one replaces it."""
    global _sees_assistant
    _sees_assistant = check


def register_assistant_libraries(find: AssistantLibraries) -> None:
    """`find` knows the libraries of the assistants that the principal sees; a later one replaces it."""
    global _assistant_libraries
    _assistant_libraries = find


def register_public_assistants(find: PublicAssistants) -> None:
    """`find` knows which of these assistants take guests; a later one replaces it."""
    global _public_assistants
    _public_assistants = find


def register_organization_closer(hide: OrganizationCloser) -> None:
    """`hide` puts all that rooms above keep of an organization out of sight, in the transaction of
    whoever closes it, and has it deleted afterwards; a later one replaces it."""
    global _hide_organization
    _hide_organization = hide


def hide_organization(organization_id: UUID) -> None:
    """Inside a transaction."""
    _hide_organization(organization_id)


def sees_assistant(principal: Principal, assistant_id: UUID) -> bool:
    return _sees_assistant(principal, assistant_id)


def assistant_libraries(principal: Principal) -> Collection[UUID]:
    """Ids of libraries, or a query for them."""
    return _assistant_libraries(principal)


def public_assistants(assistant_ids: Collection[UUID]) -> Mapping[UUID, PublicAssistant]:
    """Those that exist and take guests. One query."""
    return _public_assistants(assistant_ids)


def public_assistant(assistant_id: UUID) -> PublicAssistant | None:
    """None: there is no such assistant, or it takes no guests (any more)."""
    return _public_assistants([assistant_id]).get(assistant_id)
