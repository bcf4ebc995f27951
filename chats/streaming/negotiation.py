"""Answer a request as JSON or as an event stream, once per Idempotency-Key."""

import re
from collections.abc import Mapping
from typing import Any, Final

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.answers import Work, do_once
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from accounts.tenancy.idempotency import QUICK_ABANDONED_AFTER, Replay
from amber.lib.rest.orderly import OrderlyView
from amber.lib.rest.preferences import accepted_headers, prefers_async
from amber.lib.rest.wire import JSONRenderer
from chats.events.open_streams import refuse_beyond, watchers_asking
from chats.messages.wire import turn_wire
from chats.models import Turn
from chats.services import PostResult
from chats.streaming.stream_view import event_stream

_ROOT: Final = re.compile(r"/api/v1/(?:public/assistants/[^/]+/)?")
"""The part of an address before `turns/`: guests have their own."""


class EventStreamRenderer(JSONRenderer):
    """Lets `Accept: text/event-stream` pass negotiation; what it renders itself is JSON."""

    media_type = "text/event-stream"
    format = "sse"


class Streamable(OrderlyView):
    """A view that may answer with a turn's events. Its errors are JSON in any case."""

    renderer_classes = [JSONRenderer, EventStreamRenderer]

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(response, Response):
            request.accepted_renderer = JSONRenderer()
            request.accepted_media_type = JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)


def wants_stream(request: Request) -> bool:
    return isinstance(getattr(request, "accepted_renderer", None), EventStreamRenderer)


def answer_posted(request: Request, work: Work[PostResult]) -> HttpResponseBase:
    """Answer 201 with message and turn, or 202 for `Prefer: respond-async`, or stream the
    events."""
    _refuse_stream_too_many(request)
    done = do_once(request, work, abandoned_after=QUICK_ABANDONED_AFTER)
    principal = principal_of(request)
    if isinstance(done, PostResult) and done.turn is not None and wants_stream(request):
        return event_stream(done.turn, viewed_by=principal)
    answer: Mapping[str, Any] = done.answer if isinstance(done, Replay) else done.wire()
    if answer["turn"] is None or not wants_stream(request):
        return _answer_json(request, answer, answer["turn"])
    turn = get_visible(Turn, principal, answer["turn"]["id"])
    return event_stream(turn, viewed_by=principal)


def answer_turn(request: Request, work: Work[Turn]) -> HttpResponseBase:
    """Answer as `answer_posted` does, for a turn without a chat."""
    _refuse_stream_too_many(request)
    done = do_once(request, work, abandoned_after=QUICK_ABANDONED_AFTER)
    answer: Mapping[str, Any] = done.answer if isinstance(done, Replay) else turn_wire(done)
    if not wants_stream(request):
        return _answer_json(request, answer, answer)
    principal = principal_of(request)
    turn = get_visible(Turn, principal, answer["id"]) if isinstance(done, Replay) else done
    return event_stream(turn, viewed_by=principal)


def _refuse_stream_too_many(request: Request) -> None:
    """Raise RateLimited before there is a turn: whoever comes again would ask twice."""
    if wants_stream(request):
        refuse_beyond(watchers_asking(principal_of(request)))


def _answer_json(
    request: Request, answer: Mapping[str, Any], turn: Mapping[str, Any] | None
) -> Response:
    """Answer without waiting for the turn; `Prefer: respond-async` gets 202 and the turn's
    address."""
    root = _ROOT.match(request.path)
    if turn is None or root is None or not prefers_async(request):
        return Response(answer, status=201)
    return Response(answer, status=202, headers=accepted_headers(f"{root[0]}turns/{turn['id']}/"))
