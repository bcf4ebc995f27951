"""Page along a branch, from its end towards the root; each page is oldest first.

A cursor names a message of the branch: `before.<id>` is the page that ends before it,
`after.<id>` the page that begins after it. A page costs its own length, not the chat's.
"""

from dataclasses import dataclass
from uuid import UUID

from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from amber.lib.errors import Invalid
from amber.lib.rest.pages import limit_of
from chats.messages import transcript
from chats.models import Chat, ChatMessage


@dataclass(frozen=True, slots=True)
class PathPage:
    """A page. `previous` leads to older messages, `next` to newer ones; None at the ends."""

    messages: list[ChatMessage]
    previous: str | None
    next: str | None


def path_page(request: Request, chat: Chat) -> PathPage:
    """Return the page a request asks for. Raises Invalid for a bad cursor or limit."""
    limit = limit_of(request)
    direction, message = _cursor(request, chat)
    if direction == "after":
        newer = _after(chat, message, limit + 1)
        shown, has_newer = newer[:limit], len(newer) > limit
    else:
        leaf_id = message.parent_id if message else chat.active_leaf_id
        found = transcript.path(chat.pk, leaf_id, max_messages=limit)
        shown, has_newer = found, message is not None
    has_older = bool(shown) and shown[0].parent_id is not None
    return PathPage(
        shown,
        _link(request, f"before.{shown[0].pk}") if has_older else None,
        _link(request, f"after.{shown[-1].pk}") if has_newer and shown else None,
    )


def _after(chat: Chat, message: ChatMessage | None, count: int) -> list[ChatMessage]:
    """Return the messages that follow this one on the active branch. Reads the whole branch."""
    branch = transcript.path(chat.pk, chat.active_leaf_id)
    for place, each in enumerate(branch):
        if message is not None and each.pk == message.pk:
            return branch[place + 1 : place + 1 + count]
    return []


def _cursor(request: Request, chat: Chat) -> tuple[str, ChatMessage | None]:
    given = request.query_params.get("cursor", "")
    if not given:
        return "before", None
    direction, _, text = given.partition(".")
    try:
        message = chat.messages.filter(pk=UUID(text)).first()
    except ValueError:
        message = None
    if direction not in ("before", "after") or message is None:
        raise Invalid(fields={"cursor": ["This is not a cursor of this list."]})
    return direction, message


def _link(request: Request, cursor: str) -> str:
    return str(replace_query_param(request.build_absolute_uri(), "cursor", cursor))
