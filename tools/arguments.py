"""What a model wrote as arguments: parsed, and checked against a tool's JSON Schema 2020-12.

Every message is for the model, which reads it as the call's result and tries again. Refuses what
a schema of a stranger could do to us: it fetches no `$ref`; it checks no `pattern`, nor what
depends on one (Python's regular expressions can take forever; the tool's own service may check
it); and it gives up after MAX_SECONDS, since a few references in `anyOf` can mean a million schemas.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

import orjson
from jsonschema import FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft202012Validator, extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.protocol import ArgumentsError

MAX_ARGUMENT_CHARS: Final = 200_000
"""As long as a message may be."""

_SHOWN_CHARS: Final = 200
"""How much of a wrong value is repeated to the model."""


MAX_SECONDS: Final = 2.0
"""For one check. Usual ones take a millisecond, 200,000 characters of numbers 0.3 s (measured)."""

_ends_at: ContextVar[float] = ContextVar("_ends_at", default=0.0)

Keyword = Callable[..., Iterable[ValidationError] | None]


class _TooLongError(Exception):
    """This is not worth the time."""


def _unchecked(*_: Any) -> Iterable[ValidationError]:
    return ()


def _additional(
    validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterable[ValidationError] | None:
    if "patternProperties" in schema:
        return ()
    return _KEYWORDS["additionalProperties"](validator, value, instance, schema)


def _unique(
    validator: Any, wanted: Any, instance: Any, _: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """In linear time; the library's own way is quadratic."""
    if wanted and validator.is_type(instance, "array"):
        written = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(written) < len(instance):
            yield ValidationError("Its items must differ from each other.")


def _in_time(keyword: Keyword) -> Keyword:
    def check(*args: Any) -> Iterable[ValidationError] | None:
        if time.monotonic() > _ends_at.get():
            raise _TooLongError
        return keyword(*args)

    return check


_KEYWORDS: Final[Mapping[str, Keyword]] = dict(Draft202012Validator.VALIDATORS)
_OWN: Final[Mapping[str, Keyword]] = {
    **dict.fromkeys(("pattern", "patternProperties"), _unchecked),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), _unchecked),
    "additionalProperties": _additional,
    "uniqueItems": _unique,
}
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _in_time(_OWN.get(name, keyword)) for name, keyword in _KEYWORDS.items()},
)


def parse_arguments(raw: str) -> dict[str, Any]:
    """The object in the raw string; an empty string is an empty object. Raises ArgumentsError."""
    if not raw.strip():
        return {}
    if len(raw) > MAX_ARGUMENT_CHARS:
        raise ArgumentsError(f"The arguments are longer than {MAX_ARGUMENT_CHARS} characters.")
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ArgumentsError(f"The arguments are not valid JSON: {error}. Send one JSON object.")
    if not isinstance(parsed, dict):
        raise ArgumentsError("The arguments must be one JSON object, such as {}.")
    return parsed


def check_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raises ArgumentsError naming the argument that fits least, or saying the schema is broken.

    Takes milliseconds; a hostile schema can make it MAX_SECONDS, so call it in a thread.
    """
    _ends_at.set(time.monotonic() + MAX_SECONDS)
    no_formats = FormatChecker(formats=())  # they would compile the stranger's patterns
    try:
        Draft202012Validator.check_schema(schema, format_checker=no_formats)
        error = best_match(_Validator(schema, registry=Registry()).iter_errors(arguments))
    except _TooLongError:
        raise ArgumentsError("Checking the arguments takes too long; send simpler ones.") from None
    except (SchemaError, Unresolvable, RecursionError) as broken:
        raise ArgumentsError("This tool's schema cannot be read; it cannot be called.") from broken
    if error is not None:
        place = ".".join(str(step) for step in error.absolute_path)
        raise ArgumentsError(f"{f'{place}: ' if place else ''}{_shortened(error.message)}")


def _shortened(message: str) -> str:
    return message if len(message) <= _SHOWN_CHARS else f"{message[:_SHOWN_CHARS]}…"
