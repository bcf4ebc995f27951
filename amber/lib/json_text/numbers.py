"""Write JSON whatever Postgres returned: jsonb keeps 1e30 as an integer of 31 digits, which orjson
refuses to write. Such a number is written as the float that it was.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1
"""orjson writes integers between these bounds."""


def write(value: Any, *, option: int = 0, default: Callable[[Any], Any] | None = None) -> bytes:
    """Write as `orjson.dumps` does, as fast unless there is such a number. Raises TypeError."""
    try:
        return orjson.dumps(value, default=default, option=option)
    except TypeError:
        return orjson.dumps(_narrow(value), default=default, option=option)


def _narrow(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _narrow(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_narrow(inner) for inner in value]
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        return float(value) if abs(value) < 10**308 else str(value)
    return value
