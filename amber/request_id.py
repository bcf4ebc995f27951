"""Every request has an id: the caller's `X-Request-Id` if it is a plain one, else a new one.

It is in the logs, in error bodies, and goes back in the answer's `X-Request-Id`.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from amber.lib.ids import new_id

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = b"x-request-id"
_PLAIN = re.compile(rb"[A-Za-z0-9._-]{8,64}")


def identified(application: Application) -> Application:
    """The application with an id on each request and on its answer."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == HEADER]
        plain = len(sent) == 1 and _PLAIN.fullmatch(sent[0])
        request_id = sent[0] if plain else str(new_id()).encode()
        others = [(name, value) for name, value in scope["headers"] if name != HEADER]

        async def send_identified(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (HEADER, request_id)]
            await send(message)

        headers = [*others, (HEADER, request_id)]
        await application({**scope, "headers": headers}, receive, send_identified)

    return answer
