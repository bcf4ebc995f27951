"""What a response keeps of its request beside the turn, and the names responses go by.

A response is told from its turn alone, so what only its client knows is kept with the turn (`RequestEcho`).
Light: workers need it to tell webhooks, and load no REST framework for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

from chats.models import Turn

ECHO: Final = "response"
"""Under this name `RequestEcho` lies in `CallOptions.echo`: turns without it are no responses."""


@dataclass(frozen=True, slots=True)
class RequestEcho:
    """As the client named and wanted it. `previous` is the id of the response before."""

    model: str
    instructions: str | None = None
    previous: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_stored: bool = True
    is_background: bool = False
    user: str = ""

    @classmethod
    def of(cls, turn: Turn) -> Self | None:
        """None if the turn is no response, or nobody is to retrieve it, or it was erased."""
        kept = turn.options.get("echo", {}).get(ECHO)
        return None if kept is None else cls(**kept)


def response_id(turn: Turn) -> str:
    return f"resp_{turn.pk.hex}"


def turn_id_in(name: str) -> UUID | None:
    """The turn's id in that of a response or of one of its items; None if there is none."""
    _, _, rest = name.partition("_")
    wanted = rest.partition("_")[0]
    if len(wanted) != 32 or not set(wanted) <= set("0123456789abcdef"):
        return None
    return UUID(wanted)
