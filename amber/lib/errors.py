"""Define every error that Amber answers with: one small exception per decision a caller makes.

    AmberError
    ├── Invalid            400  the request must be changed; `fields` says where
    ├── NotAuthenticated   401  no credential, or one that is no longer valid
    ├── Forbidden          403  you can see it, but you may not do this
    ├── Missing            404  absent or not yours: the same answer
    ├── Conflict           409  right request, wrong moment
    ├── TooLarge           413
    ├── RateLimited        429  come back after `retry_after_seconds`
    └── Unavailable        503  something Amber needs is away

`amber/lib/rest/api.py` turns them into HTTP, in one place; a turn's runner turns them into events,
in one place. CODES is the whole table of codes (docs/errors.md is made from it, and tested).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

Fields = Mapping[str, Sequence[str]]


class FieldText(str):
    """Says what is wrong with a field; `code` says what kind of mistake it is, in REST framework's words."""

    code: str

    def __new__(cls, text: str, code: str) -> "FieldText":
        made = super().__new__(cls, text)
        made.code = code
        return made


CODES: dict[str, tuple[int, str]] = {
    "invalid": (400, "A field of the request is wrong; `fields` names it."),
    "malformed_json": (400, "The body is not the JSON this endpoint reads."),
    "invalid_last_event_id": (400, "Last-Event-ID must be the id of an event of this turn."),
    "role_not_allowed": (400, "Clients may not post messages of this role."),
    "no_assistant": (
        400,
        "The chat has no assistant that you may use, and the message names none.",
    ),
    "no_human_message": (400, "There is no human message to answer."),
    "unknown_model": (400, "No enabled model has this alias; GET models/ lists them."),
    "unsafe_address": (400, "The address is not one that Amber may call."),
    "discovery_failed": (400, "The tool's address did not answer with a usable manifest."),
    "not_authenticated": (401, "Sign in, or send `Authorization: Bearer <api key>`."),
    "invalid_credential": (401, "The credential is unknown, expired or revoked."),
    "forbidden": (403, "You may see this, but you may not change it in this way."),
    "csrf_failed": (403, "The CSRF token is missing or wrong."),
    "not_found": (404, "This does not exist, or you have no access to it."),
    "method_not_allowed": (405, "This address does not accept this method."),
    "not_acceptable": (406, "Amber answers with JSON (and event streams where documented)."),
    "conflict": (409, "This has changed meanwhile, or it already exists."),
    "turn_in_progress": (409, "A turn is running in this chat; `turn_id` names it."),
    "turn_not_waiting": (409, "The turn is not waiting for an approval."),
    "idempotency_mismatch": (409, "This Idempotency-Key was used with another body."),
    "idempotency_in_progress": (409, "The first request with this key has not been answered yet."),
    "too_large": (413, "The body or the file is too large."),
    "unsupported_media_type": (415, "Send application/json (or multipart where documented)."),
    "rate_limited": (429, "Too many requests; wait for Retry-After seconds."),
    "queue_full": (
        429,
        "Too many of your questions, or of your organization's, wait for an answer; ask again after Retry-After seconds.",
    ),
    "too_many_streams": (
        429,
        "Too many event streams are open; close one, or come again after Retry-After seconds.",
    ),
    "budget_exceeded": (429, "A budget is used up; the message says which, and until when."),
    "internal": (500, "Amber failed. The request id leads to the log."),
    "unavailable": (503, "A service that Amber needs is not available; try again."),
    # How a turn can fail (the turn's status, not that of an HTTP answer).
    "provider_unavailable": (502, "The model provider failed or cannot be reached."),
    "provider_rate_limited": (502, "The model provider limits Amber's requests."),
    "provider_timeout": (502, "The model provider did not answer in time."),
    "provider_lost": (502, "The model provider broke off in the middle of its answer."),
    "provider_malformed": (502, "The model provider sent an answer that cannot be read."),
    "provider_rejected": (502, "The model provider refused the request."),
    "provider_auth": (502, "The model provider refused Amber's credentials, or wants to be paid."),
    "context_too_long": (502, "The conversation is too long for the model."),
    "reply_too_long": (502, "The model's answer was too long, and was cut off."),
    "worker_lost": (502, "The workers that ran this turn failed too often."),
}


RETRYABLE = frozenset(
    {
        "turn_in_progress",
        "idempotency_in_progress",
        "rate_limited",
        "queue_full",
        "too_many_streams",
        "budget_exceeded",
        "unavailable",
        "provider_unavailable",
        "provider_rate_limited",
        "provider_timeout",
        "provider_lost",
        "provider_malformed",
        "worker_lost",
    }
)
"""Codes after which the same request, or the question asked again, can succeed later."""


WHOLE_BODY: Final = "non_field_errors"
"""The name, in `fields`, of errors that belong to no single field."""


class AmberError(Exception):
    """An error for the person who must act on it. `message` never names hidden things."""

    default_code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        fields: Fields | None = None,
        turn_id: str | None = None,
        retry_after_seconds: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code or self.default_code
        self.message = message or CODES[self.code][1]
        self.fields = fields
        self.turn_id = turn_id
        self.retry_after_seconds = retry_after_seconds
        self.headers = headers or {}
        super().__init__(self.message)

    @property
    def status(self) -> int:
        return CODES[self.code][0]

    @property
    def is_retryable(self) -> bool:
        return self.code in RETRYABLE


class Invalid(AmberError):
    """The request must be changed. Without a message of its own it has that of the first field."""

    default_code = "invalid"

    def __init__(
        self, message: str = "", *, code: str = "", fields: Fields | None = None, **rest: Any
    ) -> None:
        if fields and not (message or code):
            name, said = next(iter(fields.items()))
            message = said[0] if name in ("", WHOLE_BODY) else f"{name}: {said[0]}"
        super().__init__(message, code=code, fields=fields, **rest)


class NotAuthenticated(AmberError):
    default_code = "not_authenticated"


class Forbidden(AmberError):
    default_code = "forbidden"


class Missing(AmberError):
    default_code = "not_found"


class Conflict(AmberError):
    default_code = "conflict"


class TooLarge(AmberError):
    default_code = "too_large"


class RateLimited(AmberError):
    default_code = "rate_limited"


class Unavailable(AmberError):
    default_code = "unavailable"


@contextmanager
def blame_field(field: str) -> Iterator[None]:
    """Let an AmberError that is raised inside, and names no field, name this field of the request."""
    try:
        yield
    except AmberError as error:
        error.fields = error.fields or {field: [error.message]}
        raise
