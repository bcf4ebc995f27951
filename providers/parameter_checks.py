"""Check what an operator writes of a model's parameters, before it is saved.

Shapes only: whether a provider knows a parameter it alone can say.
"""

import re
from typing import Any, Final

from django.core.exceptions import ValidationError

from engine.provider.parameters import RESERVED

MAX_PARAMETERS: Final = 100

_NAME = re.compile(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")


def check_parameter_names(given: Any) -> None:
    """Raise ValidationError unless it is a list of names."""
    if not isinstance(given, list) or len(given) > MAX_PARAMETERS:
        raise ValidationError('Enter a list of names, such as ["temperature", "max_tokens"].')
    _check_names(given)


def check_parameters(given: Any) -> None:
    """Raise ValidationError unless it is an object of parameters."""
    if not isinstance(given, dict) or len(given) > MAX_PARAMETERS:
        raise ValidationError('Enter an object, such as {"reasoning_effort": "low"}.')
    _check_names(given)
    if isinstance(given.get("extra_body"), dict):
        _check_names(given["extra_body"])


def _check_names(names: Any) -> None:
    for name in names:
        if not (isinstance(name, str) and _NAME.match(name)):
            raise ValidationError(f"{name!r} is no name of a parameter.")
        if name in RESERVED:
            raise ValidationError(f"{name} is written by Amber for each request.")
