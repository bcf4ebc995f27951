"""Every exception becomes the one error body, with its status, and never with a trace."""

import json
from collections.abc import Callable
from typing import Any

import django.core.exceptions as django_errors
import pytest
import redis
import structlog
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.test import RequestFactory
from rest_framework import exceptions as drf
from rest_framework.response import Response
from structlog.testing import capture_logs

from amber.lib.errors import WHOLE_BODY, AmberError, Conflict, FieldText, Invalid, RateLimited
from amber.lib.rest import api


def answered(exc: Exception) -> Response:
    return api.exception_handler(exc, {})


@pytest.mark.parametrize(
    ("exc", "status", "code"),
    [
        (AmberError(), 500, "internal"),
        (Invalid("x", code="unknown_model"), 400, "unknown_model"),
        (drf.ValidationError("x"), 400, "invalid"),
        (drf.ParseError(), 400, "malformed_json"),
        (drf.NotAuthenticated(), 401, "not_authenticated"),
        (drf.AuthenticationFailed(), 401, "invalid_credential"),
        (drf.PermissionDenied(), 403, "forbidden"),
        (django_errors.PermissionDenied(), 403, "forbidden"),
        (drf.NotFound(), 404, "not_found"),
        (Http404("row 7 of Hidden"), 404, "not_found"),
        (django_errors.ObjectDoesNotExist("row 7"), 404, "not_found"),
        (drf.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (drf.NotAcceptable(), 406, "not_acceptable"),
        (drf.UnsupportedMediaType("a/b"), 415, "unsupported_media_type"),
        (drf.Throttled(wait=2.5), 429, "rate_limited"),
        (django_errors.ValidationError("“x” is not a valid UUID."), 400, "invalid"),
        (django_errors.SuspiciousOperation("x"), 400, "invalid"),
        (django_errors.DisallowedHost("x"), 400, "invalid"),
        (django_errors.BadRequest("x"), 400, "invalid"),
        (django_errors.RequestDataTooBig("x"), 413, "too_large"),
        (django_errors.TooManyFieldsSent("x"), 413, "too_large"),
        (UnreadablePostError("x"), 400, "invalid"),
        (OperationalError("password of db is x"), 503, "unavailable"),
        (redis.ConnectionError("x"), 503, "unavailable"),
        (redis.TimeoutError("x"), 503, "unavailable"),
        (redis.ReadOnlyError("x"), 503, "unavailable"),
        (redis.OutOfMemoryError("x"), 503, "unavailable"),
        (redis.ResponseError("NOREPLICAS Not enough good replicas."), 503, "unavailable"),
        (redis.ResponseError("MISCONF Redis cannot save."), 503, "unavailable"),
        (redis.ResponseError("WRONGTYPE a secret"), 500, "internal"),
        (ValueError("a secret"), 500, "internal"),
        (drf.APIException("a secret"), 500, "internal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_the_exception_has_this_answer(exc: Exception, status: int, code: str) -> None:
    response = answered(exc)
    assert (response.status_code, response.data["error"]["code"]) == (status, code)
    assert response.data["error"]["message"]
    assert response.data["error"]["request_id"]
    assert not any(hidden in str(response.data) for hidden in ("secret", "row 7", "password"))


def test_nested_errors_are_flat_with_dotted_names() -> None:
    nested: Any = {
        "name": ["Too long.", "Too dull."],
        "messages": [{}, {"content": {"text": ["Needed."]}}],
        "origins": {0: ["No origin."]},
        "inner": {"non_field_errors": ["Not both."]},
        "non_field_errors": ["Wrong."],
    }
    error = answered(drf.ValidationError(nested)).data["error"]
    assert error["fields"] == {
        "name": ["Too long.", "Too dull."],
        "messages.1.content.text": ["Needed."],
        "origins.0": ["No origin."],
        "inner": ["Not both."],
        "non_field_errors": ["Wrong."],
    }
    assert error["message"] == "name: Too long."


def test_a_refusal_of_a_field_says_which_and_why() -> None:
    error = answered(Invalid(fields={"limit": ["At least 1."]})).data["error"]
    assert error["message"] == "limit: At least 1."
    assert Invalid(fields={WHOLE_BODY: ["Not both."]}).message == "Not both."
    assert Invalid("No.", fields={"limit": ["At least 1."]}).message == "No."


def test_errors_of_a_list_of_rows_name_the_row() -> None:
    error = answered(drf.ValidationError([{}, {"name": ["Needed."]}])).data["error"]
    assert error["fields"] == {"1.name": ["Needed."]}


def test_an_error_of_the_body_as_a_whole_has_a_name_too() -> None:
    error = answered(drf.ValidationError("Wrong.")).data["error"]
    assert (error["fields"], error["message"]) == ({"non_field_errors": ["Wrong."]}, "Wrong.")


def test_each_text_of_a_field_has_a_code() -> None:
    raised = drf.ValidationError({"name": [drf.ErrorDetail("Empty.", "blank")], "b": ["Wrong."]})
    assert answered(raised).data["error"]["field_codes"] == {"name": ["blank"], "b": ["invalid"]}
    refused = Invalid(fields={"name": [FieldText("Taken.", "unique"), "Odd."]})
    error = answered(refused).data["error"]
    assert error["fields"] == {"name": ["Taken.", "Odd."]}
    assert error["field_codes"] == {"name": ["unique", "invalid"]}
    assert "field_codes" not in answered(Invalid("No.")).data["error"]


def test_errors_of_model_fields_keep_their_names() -> None:
    raised = django_errors.ValidationError({"slug": ["Taken."], "__all__": ["Wrong."]})
    fields = answered(raised).data["error"]["fields"]
    assert fields == {"slug": ["Taken."], "non_field_errors": ["Wrong."]}


def test_who_must_wait_is_told_how_long() -> None:
    response = answered(RateLimited(retry_after_seconds=7))
    assert response["Retry-After"] == "7"
    assert response.data["error"]["retryable"] is True
    assert answered(drf.Throttled(wait=2.5))["Retry-After"] == "3"


def test_a_missing_credential_names_the_scheme() -> None:
    assert answered(drf.NotAuthenticated())["WWW-Authenticate"].startswith("Bearer")


def test_a_turn_in_progress_is_named() -> None:
    error = answered(Conflict(code="turn_in_progress", turn_id="t-1")).data["error"]
    assert (error["turn_id"], error["retryable"]) == ("t-1", True)


def test_errors_that_stay_are_not_retryable() -> None:
    assert "retryable" not in answered(Invalid()).data["error"]


def test_only_the_unexpected_is_logged_with_its_trace_and_the_request_id() -> None:
    with capture_logs() as logs:
        answered(Invalid())
        response = answered(ValueError("why"))
    (line,) = logs
    assert isinstance(line["exc_info"], ValueError)
    assert line["request_id"] == response.data["error"]["request_id"]


def test_the_request_id_is_that_of_the_log_or_of_the_header_or_new(rf: RequestFactory) -> None:
    request = rf.get("/", HTTP_X_REQUEST_ID="sent")
    assert api.request_id(request) == "sent"
    with structlog.contextvars.bound_contextvars(request_id="bound"):
        assert api.request_id(request) == "bound"
    assert api.request_id() != api.request_id()


@pytest.mark.parametrize(
    ("view", "status", "code"),
    [
        (lambda request: api.handler400(request, django_errors.BadRequest()), 400, "invalid"),
        (
            lambda request: api.handler403(request, django_errors.PermissionDenied()),
            403,
            "forbidden",
        ),
        (lambda request: api.handler404(request, Http404("hidden")), 404, "not_found"),
        (api.handler500, 500, "internal"),
        (api.csrf_failure, 403, "csrf_failed"),
    ],
)
def test_djangos_own_answers_are_json(
    view: Callable[[HttpRequest], HttpResponse], status: int, code: str, rf: RequestFactory
) -> None:
    response = view(rf.get("/"))
    assert (response.status_code, response["Content-Type"]) == (status, "application/json")
    assert json.loads(response.content)["error"]["code"] == code


def test_the_middleware_answers_only_our_own_errors(rf: RequestFactory) -> None:
    def view(_: HttpRequest) -> Any:
        raise NotImplementedError

    middleware = api.AmberErrorMiddleware(view)
    answer = middleware.process_exception(rf.get("/"), Invalid(code="unknown_model"))
    assert answer is not None
    assert json.loads(answer.content)["error"]["code"] == "unknown_model"
    assert middleware.process_exception(rf.get("/"), ValueError()) is None
