"""Page along a branch, from its end towards the root; each page is oldest first.

A cursor names a message of the branch: `before.<id>` is the page that ends before it,
`after.<id>` the page that begins after it. A page costs its own length, not the chat's; one that
does not begin at the end also costs about 1 ms for each 1,000 messages after it.
"""

from dataclasses import dataclass
from uuid import UUID

from rest_framework.request import Request
from rest_framework.utils.urls import remove_query_param, replace_query_param

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
    if around := request.query_params.get("around"):
        return _page_around(request, chat, around, limit)
    direction, message = _cursor(request, chat)
    if direction == "after" and message is not None:
        newer = _ids_after(chat, message)
        shown, has_newer = _read(chat, newer[:limit]), len(newer) > limit
    else:
        leaf_id = message.parent_id if message else chat.active_leaf_id
        shown = transcript.path(chat.pk, leaf_id, max_messages=limit)
        has_newer = message is not None
    return _page(request, shown, has_newer=has_newer)


def _page_around(request: Request, chat: Chat, around: str, limit: int) -> PathPage:
    """Return the page that has this message in its middle. Raises Invalid unless it is shown."""
    message = _message(chat, around)
    newer = _ids_after(chat, message) if message is not None else []
    if message is None or not (newer or message.pk == chat.active_leaf_id):
        said = "This is not a message of the active branch."
        raise Invalid(fields={"around": [said]})
    # Near the root less than half a page lies before the message, and what follows fills the rest.
    after = newer[: max(limit // 2, limit - 1 - message.position)][: limit - 1]
    shown = transcript.path(chat.pk, message.pk, max_messages=limit - len(after))
    return _page(request, shown + _read(chat, after), has_newer=len(newer) > len(after))


def _page(request: Request, shown: list[ChatMessage], *, has_newer: bool) -> PathPage:
    has_older = bool(shown) and shown[0].parent_id is not None
    return PathPage(
        shown,
        _link(request, f"before.{shown[0].pk}") if has_older else None,
        _link(request, f"after.{shown[-1].pk}") if has_newer and shown else None,
    )


def _ids_after(chat: Chat, message: ChatMessage) -> list[UUID]:
    """Return the ids of what follows this message on the active branch, oldest first; none if it is
    not on it."""
    branch = transcript.path_ids_down(chat.pk, chat.active_leaf_id, message)
    return branch[1:] if branch and branch[0] == message.pk else []


def _read(chat: Chat, ids: list[UUID]) -> list[ChatMessage]:
    """Return these messages of one path, in its order."""
    return transcript.path(chat.pk, ids[-1], max_messages=len(ids)) if ids else []


def _cursor(request: Request, chat: Chat) -> tuple[str, ChatMessage | None]:
    given = request.query_params.get("cursor", "")
    if not given:
        return "before", None
    direction, _, text = given.partition(".")
    message = _message(chat, text)
    if direction not in ("before", "after") or message is None:
        raise Invalid(fields={"cursor": ["This is not a cursor of this list."]})
    return direction, message


def _message(chat: Chat, text: str) -> ChatMessage | None:
    try:
        return chat.messages.filter(pk=UUID(text)).first()
    except ValueError:
        return None


def _link(request: Request, cursor: str) -> str:
    address = remove_query_param(request.build_absolute_uri(), "around")
    return str(replace_query_param(address, "cursor", cursor))
