"""Convert Amber's errors to OpenAI's form and status: one table, for answers and streams alike.

    {"error": {"message", "type", "param", "code"}}

OpenAI's clients choose their exception by the status, and retry 408, 409, 429 and 5xx unless
`x-should-retry` says otherwise: so it is said, as some errors of such a status last. litellm
chooses by words: those that it knows of OpenAI's own answers are in the message (`opening`), and
`invalid_request_error` is left to what it takes for a bad request.
https://platform.openai.com/docs/guides/error-codes
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from amber.lib.errors import AmberError
from amber.lib.rest.api import Refusal, error_headers

PREFIX: Final = "/v1/"
REQUEST: Final = "invalid_request_error"
PERMISSION: Final = "permission_error"
SERVER: Final = "server_error"
TYPES: Final[Mapping[int, str]] = {
    403: PERMISSION,
    404: "not_found_error",
    409: "conflict_error",
}
"""OpenAI's error types by status, below 500; every other one there is an `invalid_request_error`."""


@dataclass(frozen=True, slots=True)
class _ErrorForm:
    """How one of Amber's codes is told. Status 0 and an empty code keep Amber's. `opening` precedes
    Amber's message."""

    type: str
    status: int = 0
    code: str | None = ""
    param: str | None = None
    opening: str = ""


TABLE: Final[Mapping[str, _ErrorForm]] = {
    "invalid": _ErrorForm(REQUEST, code="invalid_value"),
    "malformed_json": _ErrorForm(REQUEST, code="invalid_json"),
    "no_human_message": _ErrorForm(REQUEST, code="invalid_value", param="messages"),
    "unknown_model": _ErrorForm(REQUEST, 404, "model_not_found", "model"),
    "context_too_long": _ErrorForm(
        REQUEST,
        400,
        "context_length_exceeded",
        "messages",
        "This input is longer than the model's context length.",
    ),
    "provider_rejected": _ErrorForm(REQUEST, 400),
    "not_authenticated": _ErrorForm(REQUEST, code=None),
    "invalid_credential": _ErrorForm(
        REQUEST, code="invalid_api_key", opening="Incorrect API key provided."
    ),
    "forbidden": _ErrorForm(PERMISSION, code="insufficient_permissions"),
    "rate_limited": _ErrorForm("requests", code="rate_limit_exceeded"),
    "queue_full": _ErrorForm("requests", code="rate_limit_exceeded"),
    "too_many_streams": _ErrorForm("requests", code="rate_limit_exceeded"),
    "provider_rate_limited": _ErrorForm("requests", 429, "rate_limit_exceeded"),
    "budget_exceeded": _ErrorForm("insufficient_quota", code="insufficient_quota"),
    "internal": _ErrorForm(SERVER),
}
"""Amber's codes in OpenAI's form. Others keep status and name; their type follows from the
status."""

FIELD_CODES: Final[Mapping[str, str]] = {
    "required": "missing_required_parameter",
    "null": "missing_required_parameter",
    "invalid_type": "invalid_type",
    "not_a_list": "invalid_type",
    "not_a_dict": "invalid_type",
    "max_value": "integer_above_max_value",
    "min_value": "integer_below_min_value",
    "max_length": "above_max_length",
    "empty": "empty_array",
    "blank": "empty_string",
    "unsupported": "unsupported_value",
}
"""OpenAI's codes of field errors; others are `invalid_value`."""

NOT_AT_ONCE: Final = frozenset({"budget_exceeded"})
"""Codes that can succeed later, but not within the seconds in which a client retries."""

_NUMBER = re.compile(r"\.(\d+)(?=\.|\Z)")


def openai_form(error: AmberError) -> Refusal:
    """Return the whole answer to an error."""
    told = _describe_error(error)
    retried = error.is_retryable and error.code not in NOT_AT_ONCE
    headers = {"x-should-retry": "true" if retried else "false"}
    return Refusal(told.status, {"error": error_object(error)}, error_headers(error) | headers)


def error_object(error: AmberError) -> dict[str, Any]:
    told = _describe_error(error)
    message = f"{told.opening} {error.message}".lstrip()
    return {"message": message, "type": told.type, "param": told.param, "code": told.code}


def error_frame(error: AmberError) -> bytes:
    """Return an error as the last event before [DONE]; clients raise it as an exception."""
    return b"data: " + orjson.dumps({"error": error_object(error)}) + b"\n\n"


def _describe_error(error: AmberError) -> _ErrorForm:
    kind = TYPES.get(error.status, REQUEST) if error.status < 500 else SERVER
    known = TABLE.get(error.code) or _ErrorForm(kind)
    code, param = error.code if known.code == "" else known.code, known.param
    if error.fields:
        name, said = next(iter(error.fields.items()))
        param = _NUMBER.sub(r"[\1]", name)
        if error.code == "invalid":
            code = FIELD_CODES.get(getattr(said[0], "code", ""), code or "")
    return _ErrorForm(known.type, known.status or error.status, code, param, known.opening)
