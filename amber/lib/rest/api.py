"""Turn errors into HTTP, in this one place.

    {"error": {"code", "message", "fields"?, "field_codes"?, "retryable"?, "request_id", "turn_id"?}}

`as_amber_error` translates what Django, REST framework, the database and Redis raise into the tree
of `amber/lib/errors.py`; everything unknown is `internal`: logged with its trace, answered without
one. The settings name the rest: `exception_handler` (REST framework), `AmberErrorMiddleware`
(plain Django views), `csrf_failure`, and the URLconf's handler400, 403, 404 and 500. Addresses that
speak another protocol have their errors in its form (`speak_form`), whoever raises them.

Refuses to repeat the words of a 404 or of an unexpected error: they may name hidden things.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Final
from uuid import UUID

import django.core.exceptions as django_errors
import orjson
import redis
import structlog
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.deprecation import MiddlewareMixin
from psycopg.errors import ForeignKeyViolation
from rest_framework import exceptions as drf
from rest_framework.response import Response

from amber.lib.errors import (
    WHOLE_BODY,
    AmberError,
    Conflict,
    Forbidden,
    Invalid,
    Missing,
    NotAuthenticated,
    RateLimited,
    TooLarge,
    Unavailable,
)
from amber.lib.ids import new_id
from amber.lib.redis import refuses_writes

logger = structlog.get_logger(__name__)

# A restart of Postgres or Redis usually takes this long.
AWAY_RETRY_AFTER_SECONDS: Final = 5
NOT_OUR_HOST: Final = (
    "Amber does not answer at this host name or address. Its operator lists those it has in "
    "AMBER_ALLOWED_HOSTS."
)
# Where the request's log line finds whose it was.
ORGANIZATION_IN_SCOPE: Final = "amber.organization_id"


def note_organization(request: Any, organization_id: UUID) -> None:
    """Name the request's organization in its log line and in all that follow."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope[ORGANIZATION_IN_SCOPE] = str(organization_id)
        structlog.contextvars.bind_contextvars(organization_id=str(organization_id))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as an answer."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


_forms: dict[str, Callable[[AmberError], Refusal]] = {}


def speak_form(prefix: str, form: Callable[[AmberError], Refusal]) -> None:
    """Answer errors below `prefix` in this form; called while apps get ready."""
    _forms[prefix] = form


def refusal(error: AmberError, request: Any = None) -> Refusal:
    """Return the answer to an error, in the form of the request's address."""
    path = getattr(request, "path_info", "")
    for prefix, form in _forms.items():
        if path.startswith(prefix):
            return form(error)
    return Refusal(error.status, error_body(error, request), error_headers(error))


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """Answer every exception; REST framework's EXCEPTION_HANDLER."""
    error, request = as_amber_error(exc), context.get("request")
    told = refusal(error, request)
    _log(exc, error, told, request)
    return Response(told.body, status=told.status, headers=dict(told.headers))


def error_response(error: AmberError, request: HttpRequest | None = None) -> HttpResponse:
    """Return the same answer for plain Django views and middleware."""
    told = refusal(error, request)
    return HttpResponse(
        orjson.dumps(told.body),
        status=told.status,
        content_type="application/json",
        headers=dict(told.headers),
    )


def error_body(error: AmberError, request: Any = None) -> dict[str, dict[str, Any]]:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.fields:
        body["fields"] = {name: [str(text) for text in said] for name, said in error.fields.items()}
        body["field_codes"] = {
            name: [field_code(text) for text in said] for name, said in error.fields.items()
        }
    if error.is_retryable:
        body["retryable"] = True
    body["request_id"] = request_id(request)
    if error.turn_id:
        body["turn_id"] = str(error.turn_id)
    return {"error": body}


def field_code(text: str) -> str:
    """Return what kind of mistake this is: REST framework's code; `invalid` where only the text says it."""
    return str(getattr(text, "code", "") or "invalid")


def error_headers(error: AmberError) -> dict[str, str]:
    headers = dict(error.headers)
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="amber"'
    return headers


def request_id(request: Any = None) -> str:
    """Return the id in the request's log lines; a new one outside of a request."""
    bound = structlog.contextvars.get_contextvars().get("request_id")
    sent = None if bound or request is None else request.META.get("HTTP_X_REQUEST_ID")
    return str(bound or sent or new_id())


class AmberErrorMiddleware(MiddlewareMixin):
    """Answers AmberErrors and outages of plain Django views. Django answers other exceptions."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        error = as_amber_error(exception)
        if isinstance(exception, AmberError) or isinstance(error, Unavailable):
            return error_response(error, request)
        return None


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(as_amber_error(exception), request)


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(as_amber_error(exception), request)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(Missing(), request)


def handler500(request: HttpRequest) -> HttpResponse:
    """Answer an unexpected error, whose traceback Django has logged."""
    return error_response(AmberError(), request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error_response(Forbidden(code="csrf_failed"), request)


@singledispatch
def as_amber_error(exc: BaseException) -> AmberError:
    """Return what this exception means to the caller. Unknown ones are `internal`."""
    return AmberError()


@as_amber_error.register
def _(exc: AmberError) -> AmberError:
    return exc


@as_amber_error.register
def _(exc: drf.APIException) -> AmberError:
    """Translate kinds without a translation of their own by status, else to `internal`."""
    return Unavailable() if exc.status_code == 503 else AmberError()


@as_amber_error.register
def _(exc: drf.ValidationError) -> AmberError:
    fields: dict[str, list[str]] = {}
    for name, text in _flatten(exc.detail):
        fields.setdefault(name or WHOLE_BODY, []).append(text)
    return Invalid(fields=fields)


@as_amber_error.register
def _(exc: django_errors.ValidationError) -> AmberError:
    """Translate errors of model fields, such as a filter value that is not a UUID."""
    if hasattr(exc, "error_dict"):
        fields = exc.message_dict
    else:
        fields = {WHOLE_BODY: exc.messages}
    renamed = {
        WHOLE_BODY if name == django_errors.NON_FIELD_ERRORS else name: said
        for name, said in fields.items()
    }
    return Invalid(fields=renamed)


@as_amber_error.register
def _(exc: drf.PermissionDenied) -> AmberError:
    text = str(exc.detail)
    return Forbidden("" if text == drf.PermissionDenied.default_detail else text)


@as_amber_error.register
def _(exc: drf.Throttled) -> AmberError:
    wait = getattr(exc, "wait", None)
    return RateLimited(retry_after_seconds=None if wait is None else math.ceil(wait))


@as_amber_error.register
def _(exc: redis.ResponseError) -> AmberError:
    return _away() if refuses_writes(exc) else AmberError()


@as_amber_error.register
def _(exc: IntegrityError) -> AmberError:
    """A row that the request names was deleted between its look-up and the commit."""
    return Conflict() if isinstance(exc.__cause__, ForeignKeyViolation) else AmberError()


def _away() -> AmberError:
    return Unavailable(retry_after_seconds=AWAY_RETRY_AFTER_SECONDS)


_MEANINGS: Final[Mapping[type[Exception], Callable[[Any], AmberError]]] = {
    drf.ParseError: lambda exc: Invalid(str(exc.detail), code="malformed_json"),
    drf.NotAuthenticated: lambda _: NotAuthenticated(),
    drf.AuthenticationFailed: lambda _: NotAuthenticated(code="invalid_credential"),
    drf.MethodNotAllowed: lambda exc: Invalid(str(exc.detail), code="method_not_allowed"),
    drf.NotAcceptable: lambda _: Invalid(code="not_acceptable"),
    drf.UnsupportedMediaType: lambda _: Invalid(code="unsupported_media_type"),
    drf.NotFound: lambda _: Missing(),
    Http404: lambda _: Missing(),
    django_errors.ObjectDoesNotExist: lambda _: Missing(),
    django_errors.PermissionDenied: lambda _: Forbidden(),
    django_errors.SuspiciousOperation: lambda _: Invalid("The request is malformed."),
    django_errors.DisallowedHost: lambda _: Invalid(NOT_OUR_HOST),
    django_errors.BadRequest: lambda _: Invalid("The request is malformed."),
    django_errors.RequestDataTooBig: lambda _: TooLarge(),
    django_errors.TooManyFieldsSent: lambda _: TooLarge(),
    django_errors.TooManyFilesSent: lambda _: TooLarge(),
    UnreadablePostError: lambda _: Invalid("The body is incomplete."),
    MultiPartParserError: lambda _: Invalid("The form is malformed."),
    OperationalError: lambda _: _away(),
    InterfaceError: lambda _: _away(),
    redis.ConnectionError: lambda _: _away(),
    redis.TimeoutError: lambda _: _away(),
}


def _register_meanings() -> None:
    for kind, meaning in _MEANINGS.items():
        as_amber_error.register(kind, meaning)


_register_meanings()


def _flatten(detail: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted field name, text) pairs; "" for errors of the body as a whole."""
    if isinstance(detail, Mapping):
        for key, inner in detail.items():
            own = key == WHOLE_BODY
            yield from _flatten(inner, name if own else _join_names(name, key))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            plain = isinstance(inner, str)
            yield from _flatten(inner, name if plain else _join_names(name, position))
    else:
        yield name, detail if isinstance(detail, str) else str(detail)  # ErrorDetail keeps its code


def _join_names(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _log(exc: Exception, error: AmberError, told: Refusal, request: Any) -> None:
    """Log unexpected errors and outages, with the request id that the answer names."""
    if error.code in ("internal", "unavailable"):
        named = told.body["error"].get("request_id") or request_id(request)
        logger.error("request_failed", request_id=named, exc_info=exc)
