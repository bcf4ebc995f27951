"""Keep what a response needs of its request beside the turn, and name responses.

A response is made from its turn alone, so what only its client knows is kept with the turn
(`RequestEcho`). Imports little: workers need it for webhooks, without REST framework.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

from chats.models import Turn

ECHO: Final = "response"
"""The key of `RequestEcho` in `CallOptions.echo`: turns without it are no responses."""


@dataclass(frozen=True, slots=True)
class RequestEcho:
    """The client's names and wishes. `previous` is the id of the response before."""

    model: str
    instructions: str | None = None
    previous: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_stored: bool = True
    is_background: bool = False
    user: str = ""

    @classmethod
    def of(cls, turn: Turn) -> Self | None:
        """Return the turn's echo; None if it is no response, is not to be retrieved, or was
        erased."""
        kept = turn.options.get("echo", {}).get(ECHO)
        return None if kept is None else cls(**kept)


def response_id(turn: Turn) -> str:
    return f"resp_{turn.pk.hex}"


def turn_id_in(name: str) -> UUID | None:
    """Return the turn's id in the id of a response or of its item; None if there is none."""
    _, _, rest = name.partition("_")
    wanted = rest.partition("_")[0]
    if len(wanted) != 32 or not set(wanted) <= set("0123456789abcdef"):
        return None
    return UUID(wanted)
