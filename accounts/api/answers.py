"""Answer a POST that starts work: once for each Idempotency-Key."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import IdempotencyRecord
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.idempotency import ABANDONED_AFTER, Replay, once

T = TypeVar("T")
Work = Callable[[IdempotencyRecord | None], T]
"""Does what was asked for, and settles the claim in its own transaction."""


def do_once(
    request: Request,
    work: Work[T],
    *,
    body: object = None,
    abandoned_after: timedelta = ABANDONED_AFTER,
) -> T | Replay:
    """Return what `work` returns, or the first answer for a known Idempotency-Key.

    `body` is what a repeated request must equal; by itself what was sent. After `abandoned_after` a request
    that was never answered counts as dead.
    """
    return once(
        principal_of(request),
        route=f"{request.method} {request.path}",
        key=request.headers.get("Idempotency-Key"),
        body=request.data if body is None else body,
        work=work,
        abandoned_after=abandoned_after,
    )


def answer_once(
    request: Request,
    work: Work[T],
    wire: Callable[[T], Mapping[str, Any]],
    *,
    body: object = None,
    status: Callable[[T], int] = lambda _: 201,
) -> Response:
    """Do the work as `do_once` does, and answer with what it made."""
    done = do_once(request, work, body=body)
    if isinstance(done, Replay):
        return Response(done.answer, status=done.status)
    return Response(wire(done), status=status(done))
