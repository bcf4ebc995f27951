"""Count the event streams that this web process sends, and refuse more than the settings allow.

A stream counts for who watches (a user, a guest or a key) and for the organization, whose guests are
counted apart from its members: anybody can become as many guests as it takes to use up a limit. Streams
that begin in the same moment may pass a limit together. A limit of 0 is none.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.conf import settings

from accounts.principal import Principal
from amber.lib.errors import RateLimited
from chats.models import Turn

RETRY_SECONDS: Final = 5

Watcher = tuple[str, UUID | str | None]
"""Who a stream counts for: the last word of the setting that limits them, and who they are."""

_open: Final[Counter[Watcher]] = Counter()


def watchers_of(turn: Turn, viewed_by: Principal | None) -> tuple[Watcher, ...]:
    """Return for whom a stream of this turn counts; without a principal, for whoever started it."""
    if viewed_by is not None:
        return watchers_asking(viewed_by)
    return _watchers(turn.organization_id, turn.api_key_id, turn.guest_id, turn.user_id)


def watchers_asking(principal: Principal) -> tuple[Watcher, ...]:
    """Return for whom a stream counts that the principal opens, or is about to."""
    key_id = principal.key.pk if principal.key else None
    return _watchers(principal.organization_id, key_id, principal.guest_id, principal.user_id)


def _watchers(
    organization_id: UUID, key_id: UUID | None, guest_id: str | None, user_id: UUID | None
) -> tuple[Watcher, ...]:
    if key_id:
        # Whoever the key's program asks for: it may name any guests.
        return (("ORGANIZATION", organization_id), ("KEY", key_id))
    if guest_id:
        return (("ORGANIZATION", f"guests of {organization_id}"), ("USER", guest_id))
    return (("ORGANIZATION", organization_id), ("USER", user_id))


def refuse_beyond(watchers: Iterable[Watcher]) -> None:
    """Raise RateLimited (too_many_streams) if one of them has as many streams as there may be."""
    for watcher in watchers:
        limit: int = getattr(settings, f"AMBER_STREAMS_PER_{watcher[0]}")
        if limit and _open[watcher] >= limit:
            raise RateLimited(code="too_many_streams", retry_after_seconds=RETRY_SECONDS)


def note(watchers: Iterable[Watcher], change: int) -> None:
    """Count a stream that begins (1) or ends (-1). Called on the event loop."""
    for watcher in watchers:
        _open[watcher] += change
        if not _open[watcher]:
            del _open[watcher]
