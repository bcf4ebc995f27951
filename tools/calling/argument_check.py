"""Check arguments against a schema that a stranger wrote, with `jsonschema`.

Such a schema must do no harm: no `$ref` is fetched; no `pattern` is checked, nor what depends on
one (Python's regular expressions can take forever; the tool's own service may check them); and the
check gives up after MAX_SECONDS, since a few references in `anyOf` can mean a million schemas.
This module is imported with the first call that is checked: idle processes save 2 MB.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

import orjson
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft202012Validator, extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.calling.schema_check import meta_fault

__all__ = ["SchemaError", "TooLongError", "Unresolvable", "find_misfit"]

MAX_SECONDS: Final = 2.0
"""For one check. A usual one takes 1 ms, 200,000 characters of numbers take 0.3 s (measured)."""

_ends_at: ContextVar[float] = ContextVar("_ends_at", default=0.0)

Keyword = Callable[..., Iterable[ValidationError] | None]


class TooLongError(Exception):
    """The check took longer than MAX_SECONDS."""


def _check_nothing(*_: Any) -> Iterable[ValidationError]:
    return ()


def _check_additional(
    validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterable[ValidationError] | None:
    if "patternProperties" in schema:
        return ()
    return _KEYWORDS["additionalProperties"](validator, value, instance, schema)


def _check_unique(
    validator: Any, wanted: Any, instance: Any, _: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Check `uniqueItems` in linear time; the library's own way is quadratic."""
    if wanted and validator.is_type(instance, "array"):
        written = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(written) < len(instance):
            yield ValidationError("Its items must differ from each other.")


def _in_time(keyword: Keyword) -> Keyword:
    def check(*args: Any) -> Iterable[ValidationError] | None:
        if time.monotonic() > _ends_at.get():
            raise TooLongError
        return keyword(*args)

    return check


_KEYWORDS: Final[Mapping[str, Keyword]] = dict(Draft202012Validator.VALIDATORS)
_OWN: Final[Mapping[str, Keyword]] = {
    **dict.fromkeys(("pattern", "patternProperties"), _check_nothing),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), _check_nothing),
    "additionalProperties": _check_additional,
    "uniqueItems": _check_unique,
}
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _in_time(_OWN.get(name, keyword)) for name, keyword in _KEYWORDS.items()},
)


def find_misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> ValidationError | None:
    """Return what fits least, or None if all fits.

    Raises TooLongError, SchemaError, Unresolvable.
    """
    _ends_at.set(time.monotonic() + MAX_SECONDS)
    if fault := meta_fault(schema):
        raise SchemaError(fault[1])
    errors: Iterator[ValidationError] = _Validator(schema, registry=Registry()).iter_errors(
        arguments
    )
    worst: ValidationError | None = best_match(errors)
    return worst
