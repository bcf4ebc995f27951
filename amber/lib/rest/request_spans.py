"""Trace every request, around the ASGI application: one span until its last byte, also of a stream.

It belongs to the caller's trace if the request has a `traceparent`; whether it is recorded, Amber decides
for itself (`amber.lib.tracing.exporting.CallerSampler`). Its name is the route, without ids. Neither
the path nor the query is written down: they hold ids, and in links of mails secrets.
"""

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, Final

from django.core.handlers.asgi import ASGIRequest

from amber.lib.rest.api import ORGANIZATION_IN_SCOPE
from amber.lib.tracing import names, spans

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADER: Final = b"traceparent"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FILES: Final = ("/static/", "/assets/")


def trace_requests(application: Handler, *, besides: Collection[str]) -> Handler:
    """Wrap the application: a span for each request, but for those of files and of the paths `besides`."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_traced(scope["path"], besides):
            await _trace(application, scope, receive, send)
        else:
            await application(scope, receive, send)

    return answer


async def _trace(application: Handler, scope: Scope, receive: Receive, send: Send) -> None:
    method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
    about = {names.HTTP_METHOD: method, names.URL_SCHEME: scope["scheme"]}
    with spans.enter(spans.Beginning(method, "server", _caller(scope), about)) as span:

        async def note_status(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                span.set({names.HTTP_STATUS: message["status"]})
                if message["status"] >= 500:
                    span.set({names.ERROR_TYPE: str(message["status"])})
            await send(message)

        await application(scope, receive, note_status if span.is_recorded else send)


def name_request(request: ASGIRequest) -> None:
    """Name the current span after the request's route, which the application has found meanwhile."""
    span = spans.current()
    if not span.is_recorded:
        return
    span.set({names.ORGANIZATION_ID: request.scope.get(ORGANIZATION_IN_SCOPE)})
    if match := request.resolver_match:
        route = f"/{match.route}"
        span.set({names.HTTP_ROUTE: route})
        span.rename(names.REQUEST.format(method=request.method, route=route))


def _caller(scope: Scope) -> str | None:
    """Return the caller's `traceparent`; of several, as of none, nothing."""
    sent = [value for name, value in scope["headers"] if name == _HEADER]
    return sent[0].decode("latin-1") if len(sent) == 1 else None


def _is_traced(path: str, besides: Collection[str]) -> bool:
    return path not in besides and not path.startswith(_FILES)
