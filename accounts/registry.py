"""Hold what packages above register here at start, because imports go downwards only.

An API key can be limited to an assistant, and a guest always is. Only `assistants` knows which
assistants a principal sees and which take guests; until it has registered, there are none. Only
`chats` knows all that an organization has, and only `providers` what a new one may use.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Generic, ParamSpec, TypeVar
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


P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function of a package above: `otherwise` answers until one has registered; a later one replaces it."""

    def __init__(self, otherwise: Callable[P, R]) -> None:
        self._function = otherwise

    def register(self, function: Callable[P, R]) -> None:
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)


def _do_nothing(organization_id: UUID) -> None:
    """Do nothing: no package above has registered."""


receive_newcomer: Final[Hook[[UUID], None]] = Hook(_do_nothing)
"""Gives an organization that somebody made for themselves what it begins with, in the transaction that makes it."""

hide_organization: Final[Hook[[UUID], None]] = Hook(_do_nothing)
"""Hides what packages above keep of an organization, in the transaction that closes it; the rows are deleted
afterwards."""

sees_assistant: Final[Hook[[Principal, UUID], bool]] = Hook(lambda principal, assistant_id: False)

assistant_libraries: Final[Hook[[Principal], Collection[UUID]]] = Hook(lambda principal: ())
"""Returns the ids of the libraries of a principal's assistants, or a query for them."""

assistant_names: Final[Hook[[Collection[UUID]], Mapping[UUID, str]]] = Hook(lambda ids: {})
"""Returns the names of those that the tenant at work may see. One query."""

find_public_assistants: Final[Hook[[Collection[UUID]], Mapping[UUID, PublicAssistant]]] = Hook(
    lambda ids: {}
)


def public_assistants(assistant_ids: Collection[UUID]) -> Mapping[UUID, PublicAssistant]:
    """Return those that exist and take guests, of any organization: a visitor names only the
    assistant. One query."""
    with across_tenants():
        return find_public_assistants(assistant_ids)


def public_assistant(assistant_id: UUID) -> PublicAssistant | None:
    """Return the assistant; None if there is none, or if it takes no guests (any more)."""
    return public_assistants([assistant_id]).get(assistant_id)
