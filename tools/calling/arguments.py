"""Parse what a model wrote as arguments, and check it against a tool's JSON Schema 2020-12.

Every error message is for the model, which reads it as the call's result and tries again.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from amber.lib.shortening import shorten
from tools.protocol import ArgumentsError

MAX_ARGUMENT_CHARS: Final = 200_000
"""As long as a message may be."""

_SHOWN_CHARS: Final = 200
"""How much of a wrong value is repeated to the model."""


def parse_arguments(raw: str) -> dict[str, Any]:
    """Parse a JSON object; an empty string is an empty object. Raises ArgumentsError."""
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
    """Raise ArgumentsError naming the argument that fits least, or saying the schema is broken.

    Takes milliseconds, but a hostile schema can make it two seconds, so call it in a thread.
    """
    from tools.calling.argument_check import SchemaError, TooLongError, Unresolvable, find_misfit

    try:
        error = find_misfit(arguments, schema)
    except TooLongError:
        raise ArgumentsError("Checking the arguments takes too long; send simpler ones.") from None
    except (SchemaError, Unresolvable, RecursionError) as broken:
        raise ArgumentsError("This tool's schema cannot be read; it cannot be called.") from broken
    if error is not None:
        place = ".".join(str(step) for step in error.absolute_path)
        raise ArgumentsError(
            f"{f'{place}: ' if place else ''}{shorten(error.message, _SHOWN_CHARS)}"
        )
