"""Serve a turn's events as server-sent events: replay from Last-Event-ID, follow, end with it.

One function, `event_stream`, makes every streaming response; it gives the request's database
connections back before it returns (a pool of 2 serves any number of viewers). A viewer whose key is
revoked meanwhile, or whose session is signed out, is cut off, and gets the reason when it
reconnects. The protocol is docs/stream-protocol.md.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from accounts.principal import Principal
from accounts.sign_in.authentication import authenticate
from accounts.tenancy.access import get_visible
from amber.lib.errors import AmberError, Invalid, NotAuthenticated
from amber.lib.rest.api import error_response
from amber.lib.rest.drain import drain
from chats.events import open_streams
from chats.events.viewers import StreamEvent
from chats.models import Turn
from chats.streaming.turn_events import turn_events

HEARTBEAT = b": heartbeat\n\n"

MAX_SEQ = 2**53
"""Larger numbers do not survive JavaScript."""

MAX_DIGITS = 20
"""Python refuses to read numbers of thousands of digits."""


def event_stream(
    turn: Turn,
    *,
    after: int = 0,
    viewed_by: Principal | None = None,
    is_resumed: bool = False,
) -> StreamingHttpResponse:
    """Return the response that streams this turn's events after number `after`.

    `viewed_by` None stands for the user who started the turn. `is_resumed`: the client knows the stream's address,
    before any event has told it.

    Call it in the request's own thread: it returns that thread's database connections. Raises RateLimited
    (too_many_streams).
    """
    open_streams.refuse_beyond(open_streams.watchers_of(turn, viewed_by))
    response = stream_response(_bytes(turn, after, viewed_by, is_resumed))
    # The body begins later, on the event loop, and lasts as long as the turn.
    connections.close_all()
    return response


def stream_response(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return a response of server-sent events, which no proxy may cache or buffer."""
    response = StreamingHttpResponse(body, content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


def last_event_id(request: HttpRequest) -> int:
    """Return the number from header or query, or 0. Raises Invalid (invalid_last_event_id)."""
    given = request.headers.get("Last-Event-ID") or request.GET.get("last_event_id") or "0"
    is_number = given.isascii() and given.isdigit() and len(given) <= MAX_DIGITS
    if not is_number or int(given) > MAX_SEQ:
        raise Invalid(code="invalid_last_event_id")
    return int(given)


@method_decorator(csrf_exempt, name="dispatch")  # it only reads: any other method is a 405
class TurnEventsView(View):
    """Serves GET turns/{id}/events/."""

    http_method_names = ["get", "options"]

    def get(
        self, request: HttpRequest, turn_id: UUID, **place: UUID
    ) -> HttpResponse | StreamingHttpResponse:
        try:
            principal = self.authenticate_viewer(request, **place)
            turn = get_visible(Turn, principal, turn_id)
            return event_stream(
                turn, after=last_event_id(request), viewed_by=principal, is_resumed=True
            )
        except AmberError as exc:
            return error_response(exc, request)

    def authenticate_viewer(self, request: HttpRequest, **place: UUID) -> Principal:
        """Return who asks. `place` holds the other ids of the address.

        Raises what `authenticate` raises, NotAuthenticated and Missing.
        """
        principal = authenticate(request)
        if principal is None:
            raise NotAuthenticated
        return principal

    def http_method_not_allowed(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        response = error_response(AmberError(code="method_not_allowed"), request)
        response["Allow"] = "GET, OPTIONS"
        return response


async def _bytes(
    turn: Turn, after: int, viewed_by: Principal | None, is_resumed: bool
) -> AsyncIterator[bytes]:
    async with aclosing(turn_events(turn, after, viewed_by=viewed_by)) as events:
        try:
            async for event in events:
                is_resumed = is_resumed or (event is not None and event.seq > 0)
                yield HEARTBEAT if event is None else _block(event)
                if drain.is_closing and is_resumed:
                    return
        except NotAuthenticated:
            return  # the stream ends before its turn: clients reconnect, and get a 401


def _block(event: StreamEvent) -> bytes:
    if not event.seq:  # no number: a client that resumes must not ask for what comes after it
        return b"event: %s\ndata: %s\n\n" % (event.name.encode(), event.data)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.name.encode(), event.data)
