"""Hold what packages above register here at start, because imports go downwards only.

An API key can be limited to an assistant, and a guest always is. Only `assistants` knows which
assistants a principal sees and which take guests; until it has registered, there are none. Only
`chats` knows all that an organization has, and only `providers` what a new one may use.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from accounts.principal import Principal
from amber.lib.database.tenant import across_tenants


@dataclass(frozen=True, slots=True)
class PublicAssistant:
    """What authentication must know of an assistant that takes guests.

    Tokens of another `guest_epoch` are refused. `origins` are the web pages that may use it; an
    empty tuple allows all.
    """

    id: UUID
    organization_id: UUID
    guest_epoch: int
    origins: tuple[str, ...] = ()

    def may_be_used_from(self, origin: str | None) -> bool:
        """Return whether a page of `origin` may use it. Servers send none, and are not limited."""
        return not self.origins or origin is None or origin in self.origins


AssistantLibraries = Callable[[Principal], Collection[UUID]]
AssistantCheck = Callable[[Principal, UUID], bool]
OrganizationHook = Callable[[UUID], None]
PublicAssistants = Callable[[Collection[UUID]], Mapping[UUID, PublicAssistant]]
AssistantNames = Callable[[Collection[UUID]], Mapping[UUID, str]]


def _sees_none(principal: Principal, assistant_id: UUID) -> bool:
    return False


def _knows_no_library(principal: Principal) -> Collection[UUID]:
    return ()


def _none_is_public(assistant_ids: Collection[UUID]) -> Mapping[UUID, PublicAssistant]:
    return {}


def _none_has_a_name(assistant_ids: Collection[UUID]) -> Mapping[UUID, str]:
    return {}


def _has_nothing(organization_id: UUID) -> None:
    """Do nothing: no package above has registered."""


_sees_assistant: AssistantCheck = _sees_none
_receive_newcomer: OrganizationHook = _has_nothing
_assistant_libraries: AssistantLibraries = _knows_no_library
_hide_organization: OrganizationHook = _has_nothing
_public_assistants: PublicAssistants = _none_is_public
_assistant_names: AssistantNames = _none_has_a_name


def register_assistant_check(check: AssistantCheck) -> None:
    """Register the check whether a principal sees an assistant; a later one replaces it."""
    global _sees_assistant
    _sees_assistant = check


def register_assistant_libraries(find: AssistantLibraries) -> None:
    """Register who finds the libraries of a principal's assistants; a later one replaces it."""
    global _assistant_libraries
    _assistant_libraries = find


def register_public_assistants(find: PublicAssistants) -> None:
    """Register who finds out which assistants take guests; a later one replaces it."""
    global _public_assistants
    _public_assistants = find


def register_assistant_names(find: AssistantNames) -> None:
    """Register who knows the names of assistants; a later one replaces it."""
    global _assistant_names
    _assistant_names = find


def register_organization_closer(hide: OrganizationHook) -> None:
    """Register who hides what packages above keep of an organization; a later one replaces it.

    `hide` runs in the transaction that closes the organization; the rows are deleted afterwards.
    """
    global _hide_organization
    _hide_organization = hide


def register_newcomer(receive: OrganizationHook) -> None:
    """Register who gives an organization that somebody made for themselves what it begins with; a
    later one replaces it.

    `receive` runs in the transaction that makes it.
    """
    global _receive_newcomer
    _receive_newcomer = receive


def receive_newcomer(organization_id: UUID) -> None:
    """Give a new organization what it begins with. Call it inside a transaction."""
    _receive_newcomer(organization_id)


def hide_organization(organization_id: UUID) -> None:
    """Hide what packages above keep of it. Call it inside a transaction."""
    _hide_organization(organization_id)


def sees_assistant(principal: Principal, assistant_id: UUID) -> bool:
    return _sees_assistant(principal, assistant_id)


def assistant_libraries(principal: Principal) -> Collection[UUID]:
    """Return ids of libraries, or a query for them."""
    return _assistant_libraries(principal)


def assistant_names(assistant_ids: Collection[UUID]) -> Mapping[UUID, str]:
    """Return the names of those that the tenant at work may see. One query."""
    return _assistant_names(assistant_ids)


def public_assistants(assistant_ids: Collection[UUID]) -> Mapping[UUID, PublicAssistant]:
    """Return those that exist and take guests, of any organization: a visitor names only the
    assistant. One query."""
    with across_tenants():
        return _public_assistants(assistant_ids)


def public_assistant(assistant_id: UUID) -> PublicAssistant | None:
    """Return the assistant; None if there is none, or if it takes no guests (any more)."""
    return public_assistants([assistant_id]).get(assistant_id)
